; Numbers of a table at indices of one bit: the last of them is behind as many as that bit says.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %table = getelementptr i8, ptr %group, i64 2048
  %from = getelementptr i32, ptr %in, i32 %lane
  %value = load i32, ptr %from
  %word = mul i32 %value, 41
  %first = and i32 %word, 64
  %firstIndex = zext i32 %first to i64
  %firstPlace = getelementptr i32, ptr %table, i64 %firstIndex
  %a = load i32, ptr %firstPlace
  %second = and i32 %word, 128
  %secondIndex = zext i32 %second to i64
  %secondPlace = getelementptr i32, ptr %table, i64 %secondIndex
  %b = load i32, ptr %secondPlace
  %threefold = mul i32 %b, 3
  %sum = add i32 %a, %threefold
  %to = getelementptr i32, ptr %out, i32 %lane
  store i32 %sum, ptr %to
  ret void
}
