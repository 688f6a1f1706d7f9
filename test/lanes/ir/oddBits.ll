; Independent threads that compute in 65 bits and in 33, as LLVM does where it sums up a loop.
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
  %from = getelementptr i32, ptr %in, i64 %index
  %to = getelementptr i32, ptr %out, i64 %index
  %n = load i32, ptr %from, align 4
  %there = load i32, ptr %to, align 4
  %long = zext i32 %n to i33
  %less = add i33 %long, -1
  %product = mul i33 %long, %less
  %half = lshr i33 %product, 1
  %sum = trunc i33 %half to i32
  %longer = zext i32 %sum to i65
  %more = add i65 %longer, 1
  %square = mul i65 %more, %more
  %quarter = lshr i65 %square, 2
  %word = trunc i65 %quarter to i32
  %all = add i32 %word, %there
  store i32 %all, ptr %to, align 4
  ret void
}
