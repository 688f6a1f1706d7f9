; Copies of bytes from memory to memory: of a vector, whose type an element at index 0 has, and of three words.
%vector = type { <4 x float> }
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %low = and i32 %lane, 7
  %index = zext i32 %low to i64
  %neighbour = xor i64 %index, 4
  %there = getelementptr %vector, ptr %in, i64 %neighbour
  %here = getelementptr %vector, ptr %in, i64 %index
  %to = getelementptr %vector, ptr %out, i64 %index
  %there0 = getelementptr %vector, ptr %there, i64 0
  %to0 = getelementptr %vector, ptr %to, i64 0
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to0, ptr align 4 %there0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 %here, i64 12, i1 false)
  ret void
}
