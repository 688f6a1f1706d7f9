; Vectors that begin within others: of each lane, and of the lanes of a row; and words at multiples of six bytes.
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
  %own = getelementptr i32, ptr %in, i32 %lane
  %four = load <4 x i32>, ptr %own, align 4
  %chosen = getelementptr i32, ptr %in, i32 %row
  %number = load i32, ptr %chosen
  %other = lshr i32 %number, 3
  %first = mul i32 %other, 8
  %place = add i32 %first, %column
  %inRow = getelementptr i32, ptr %in, i32 %place
  %two = load <2 x i32>, ptr %inRow, align 4
  %sixes = getelementptr [6 x i8], ptr %in, i32 %lane
  %six = load i32, ptr %sixes, align 2
  %four.part0 = extractelement <4 x i32> %four, i64 0
  %four.weighed0 = mul i32 %four.part0, 3
  %four.part1 = extractelement <4 x i32> %four, i64 1
  %four.weighed1 = mul i32 %four.part1, 5
  %four.sum1 = add i32 %four.weighed0, %four.weighed1
  %four.part2 = extractelement <4 x i32> %four, i64 2
  %four.weighed2 = mul i32 %four.part2, 7
  %four.sum2 = add i32 %four.sum1, %four.weighed2
  %four.part3 = extractelement <4 x i32> %four, i64 3
  %four.weighed3 = mul i32 %four.part3, 11
  %four.sum3 = add i32 %four.sum2, %four.weighed3
  %two.part0 = extractelement <2 x i32> %two, i64 0
  %two.weighed0 = mul i32 %two.part0, 13
  %two.part1 = extractelement <2 x i32> %two, i64 1
  %two.weighed1 = mul i32 %two.part1, 17
  %two.sum1 = add i32 %two.weighed0, %two.weighed1
  %both = add i32 %four.sum3, %two.sum1
  %all = add i32 %both, %six
  %to = getelementptr i32, ptr %out, i32 %lane
  store i32 %all, ptr %to
  ret void
}
