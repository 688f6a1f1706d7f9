; Lanes that come from two sides have the constant of their own.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %index = zext i32 %lane to i64
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i32, ptr %in, i64 %index
  %to = getelementptr i32, ptr %out, i64 %index
  %value = load i32, ptr %from
  %isLarge = icmp sgt i32 %value, 10
  br i1 %isLarge, label %large, label %end
large:
  store i32 0, ptr %from
  br label %end
end:
  %result = phi i32 [ 5, %0 ], [ 7, %large ]
  store i32 %result, ptr %to
  ret void
}
