; What a lane's number goes through on its way to a shuffle: masks and conversions that leave its five lowest bits, and
; some that do not; of all lanes, and within halves.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @kernel(ptr addrspace(1) %out, i32 %codes, i64 %wide, i16 %narrow) convergent {
  %value = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %low = and i32 %codes, 31
  %a = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %low, i32 31)
  call void @put(ptr addrspace(1) %out, i32 0, i32 %a)
  %more = and i32 %codes, 127
  %short = trunc i32 %more to i16
  %kept = and i16 %short, 63
  %long = zext i16 %kept to i32
  %b = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %long, i32 31)
  call void @put(ptr addrspace(1) %out, i32 1, i32 %b)
  %fewer = and i32 %codes, 15
  %c = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %fewer, i32 31)
  call void @put(ptr addrspace(1) %out, i32 2, i32 %c)
  %other = and i32 %codes, 30
  %d = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %other, i32 31)
  call void @put(ptr addrspace(1) %out, i32 3, i32 %d)
  %halves = and i32 %codes, 31
  %e = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %halves, i32 4127)
  call void @put(ptr addrspace(1) %out, i32 4, i32 %e)
  ret void
}

define internal void @put(ptr addrspace(1) %out, i32 %place, i32 %value) alwaysinline {
  %address = getelementptr i32, ptr addrspace(1) %out, i32 %place
  store volatile i32 %value, ptr addrspace(1) %address
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
