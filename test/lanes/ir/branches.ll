; Nested branches that lanes take differently, a join of three values.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
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
  br i1 %isLarge, label %large, label %join
large:
  %odd = and i32 %value, 1
  %isOdd = icmp ne i32 %odd, 0
  br i1 %isOdd, label %triple, label %join
triple:
  %three = mul i32 %value, 3
  br label %join
join:
  %result = phi i32 [ -1, %0 ], [ %value, %large ], [ %three, %triple ]
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %result, ptr %to
  ret void
}
