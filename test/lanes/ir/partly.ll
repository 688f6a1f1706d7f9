; Words of private memory of which one begins within another.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %own = alloca [36 x i8], align 4
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i32, ptr %in, i32 %lane
  %value = load i32, ptr %from
  %number = and i32 %value, 7
  %index = zext i32 %number to i64
  %first = getelementptr [4 x i8], ptr %own, i64 %index
  %second = getelementptr i8, ptr %first, i64 2
  %a = mul i32 %value, 100003
  %b = mul i32 %value, 1009
  store i32 %a, ptr %first, align 2
  store i32 %b, ptr %second, align 2
  %word = load i32, ptr %first, align 2
  %to = getelementptr i32, ptr %out, i32 %lane
  store i32 %word, ptr %to
  ret void
}
