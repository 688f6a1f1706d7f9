; An index of 32 bits that wraps between two lanes: those in front of the array are not active.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %before = sub i32 %lane, 5
  %isInside = icmp ult i32 %before, 100
  br i1 %isInside, label %inside, label %end
inside:
  %index = zext i32 %before to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %value, ptr %to
  br label %end
end:
  ret void
}
