; Two rows of halves of words that independent threads move as they are.
declare void @sm_kernel(i32, i1)
declare void @sm_independent()
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  call void @sm_independent()
  %lane = call i32 @sm_lane()
  %index = zext i32 %lane to i64
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i16, ptr %in, i64 %index
  %from2 = getelementptr i8, ptr %from, i64 64
  %to = getelementptr i16, ptr %out, i64 %index
  %to2 = getelementptr i8, ptr %to, i64 64
  %first = load i16, ptr %from, align 2
  %second = load i16, ptr %from2, align 2
  store i16 %first, ptr %to, align 2
  store i16 %second, ptr %to2, align 2
  ret void
}
