; Two words that are no neighbours, although the numbers that their addresses are made of differ by one.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %low = and i32 %lane, 7
  %four = shl nuw nsw i32 %low, 2
  %bytes = zext nneg i32 %four to i64
  %next = or disjoint i32 %four, 1
  %word = zext nneg i32 %next to i64
  %there = getelementptr i32, ptr %in, i64 %word
  %other = load i32, ptr %there, align 4
  %at = getelementptr i8, ptr %in, i64 %bytes
  %value = load i32, ptr %at, align 4
  %scaled = mul i32 %other, 100
  %sum = add i32 %value, %scaled
  %index = zext i32 %lane to i64
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sum, ptr %to
  ret void
}
