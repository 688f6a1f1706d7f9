; A lane keeps a pointer beside words in memory of its own: the pointer is taken apart as the words are.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %own = alloca { ptr, i32, i32 }, align 8
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %index = zext i32 %lane to i64
  %back = sub i64 31, %index
  %mirrored = getelementptr i32, ptr %in, i64 %back
  %first = getelementptr { ptr, i32, i32 }, ptr %own, i64 0, i32 1
  %second = getelementptr { ptr, i32, i32 }, ptr %own, i64 0, i32 2
  store ptr %mirrored, ptr %own
  store i32 %lane, ptr %first
  store i32 1000, ptr %second
  %pointer = load ptr, ptr %own
  %a = load i32, ptr %first
  %b = load i32, ptr %second
  %value = load i32, ptr %pointer
  %product = mul i32 %a, %b
  %sum = add i32 %product, %value
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sum, ptr %to
  ret void
}
