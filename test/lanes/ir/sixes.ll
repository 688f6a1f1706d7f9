; Words that are written at multiples of six bytes, by the first twenty lanes; what lies between them stays.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %row = lshr i32 %lane, 3
  %column = and i32 %lane, 7
  %isFirst = icmp ult i32 %lane, 20
  br i1 %isFirst, label %first, label %end
first:
  %own = getelementptr i32, ptr %in, i32 %lane
  %value = load i32, ptr %own
  %to = getelementptr [6 x i8], ptr %out, i32 %lane
  store i32 %value, ptr %to, align 2
  br label %end
end:
  ret void
}
