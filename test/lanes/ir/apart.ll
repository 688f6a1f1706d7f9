; Each entry has lanes ask which of them run behind a branch on one value: what lanes may have apart, but for the first.
target triple = "nvptx64-nvidia-cuda"

define internal i32 @sm_active_lanes() noinline convergent nounwind {
  %mask = call i32 asm "activemask.b32 $0;", "=r"() convergent nounwind
  ret i32 %mask
}

define internal void @ask(ptr addrspace(1) %out, i32 %value) alwaysinline convergent {
  %isSet = icmp eq i32 %value, 3
  br i1 %isSet, label %asks, label %end
asks:
  %mask = call i32 @sm_active_lanes() convergent
  store volatile i32 %mask, ptr addrspace(1) %out
  br label %end
end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @other(i32) memory(none) nounwind

; What lies at one address.
define ptx_kernel void @sm_entry_1(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %value = load i32, ptr addrspace(1) %in
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What lies in a lane's own memory.
define ptx_kernel void @sm_entry_2(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %own = alloca [16 x i32]
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = getelementptr i32, ptr %own, i32 %number
  store i32 %lane, ptr %first
  %index = load i32, ptr addrspace(1) %in
  %place = getelementptr i32, ptr %own, i32 %index
  %value = load i32, ptr %place
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What one lane may read before another.
define ptx_kernel void @sm_entry_3(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %value = load volatile i32, ptr addrspace(1) %in
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What a lane finds that adds to a number.
define ptx_kernel void @sm_entry_4(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %value = atomicrmw add ptr addrspace(1) %in, i32 1 monotonic
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What a lane gets that each names for itself.
define ptx_kernel void @sm_entry_5(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %value = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %lane, i32 %lane, i32 31)
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What a lane has read last in a loop of as many turns as it likes.
define ptx_kernel void @sm_entry_6(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %turn = phi i32 [ 0, %entry ], [ %more, %loop ]
  %value = load i32, ptr addrspace(1) %in
  store volatile i32 %value, ptr addrspace(1) %out
  call void asm sideeffect "", "~{memory}"()
  %more = add i32 %turn, 1
  %again = icmp slt i32 %more, %lane
  br i1 %again, label %loop, label %behind
behind:
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; What a function says of which nothing is known.
define ptx_kernel void @sm_entry_7(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %value = call i32 @other(i32 %number)
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; Which way a lane came.
define ptx_kernel void @sm_entry_8(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %first, label %second
first:
  store volatile i32 1, ptr addrspace(1) %out
  br label %meeting
second:
  %further = mul i32 %number, %number
  store volatile i32 2, ptr addrspace(1) %in
  br label %meeting
meeting:
  %value = phi i32 [ %number, %first ], [ %further, %second ]
  call void @ask(ptr addrspace(1) %out, i32 %value)
  ret void
}

; Whether the last lane is missing: no question whether all are there.
define ptx_kernel void @sm_entry_9(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %number) convergent {
  %mask = call i32 @sm_active_lanes() convergent
  %isMissing = icmp sgt i32 %mask, -1
  %value = zext i1 %isMissing to i32
  store volatile i32 %value, ptr addrspace(1) %out
  ret void
}
