; One lane's value for all: a store to one place leaves the last active lane's; a sum and a ballot count active lanes.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i32 @sm_reduce_add_i32(i32) convergent memory(none)
declare i32 @sm_ballot(i1) convergent memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  %isLarge = icmp sgt i32 %value, 10
  br i1 %isLarge, label %large, label %end
large:
  store i32 %value, ptr %out
  %sum = call i32 @sm_reduce_add_i32(i32 %value)
  %second = getelementptr i32, ptr %out, i64 1
  store i32 %sum, ptr %second
  %even = and i32 %lane, 1
  %isEven = icmp eq i32 %even, 0
  %ballot = call i32 @sm_ballot(i1 %isEven)
  %third = getelementptr i32, ptr %out, i64 2
  store i32 %ballot, ptr %third
  br label %end
end:
  ret void
}
