; In a branch, where the mask is not known: 16 bits a lane in a row, gathered, and words scattered.
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
  %nearby = getelementptr i16, ptr %in, i64 %index
  %half = load i16, ptr %nearby
  %five = mul i32 %value, 5
  %place = and i32 %five, 31
  %far = zext i32 %place to i64
  %there = getelementptr i32, ptr %in, i64 %far
  %other = load i16, ptr %there
  %sum = add i16 %half, %other
  %result = zext i16 %sum to i32
  %neighbour = xor i64 %index, 1
  %to = getelementptr i32, ptr %out, i64 %neighbour
  store i32 %result, ptr %to
  br label %join
join:
  ret void
}
