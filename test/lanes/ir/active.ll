; Lanes that ask which of them run: in the entry, after a branch by what all have the same of, after one that parts
; them, where they have met again, in a loop whose turns differ, and behind it.
target triple = "nvptx64-nvidia-cuda"

define internal i32 @sm_active_lanes() noinline convergent nounwind {
  %mask = call i32 asm "activemask.b32 $0;", "=r"() convergent nounwind
  ret i32 %mask
}

define ptx_kernel void @sm_entry_1(ptr addrspace(1) %out, i32 %number) convergent {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = call i32 @sm_active_lanes() convergent
  %all = icmp eq i32 %first, -1
  %whole = zext i1 %all to i32
  call void @put(ptr addrspace(1) %out, i32 8, i32 %whole)
  %same = icmp sgt i32 %number, 3
  br i1 %same, label %together, label %next
together:
  %second = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 1, i32 %second)
  br label %next
next:
  call void @put(ptr addrspace(1) %out, i32 0, i32 %first)
  %vote = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %same)
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %apart, label %meeting
apart:
  %third = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 2, i32 %third)
  br label %meeting
meeting:
  %fourth = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 3, i32 %fourth)
  %sum = call i32 @llvm.nvvm.redux.sync.add(i32 %lane, i32 -1)
  %both = or i32 %vote, %sum
  %any = icmp ne i32 %both, 0
  br i1 %any, label %voted, label %loop
voted:
  %fifth = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 4, i32 %fifth)
  br label %loop
loop:
  %turn = phi i32 [ 0, %meeting ], [ 0, %voted ], [ %more, %loop ]
  %sixth = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 5, i32 %sixth)
  %more = add i32 %turn, 1
  %again = icmp slt i32 %more, %lane
  br i1 %again, label %loop, label %behind
behind:
  %seventh = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 6, i32 %seventh)
  %late = icmp eq i32 %turn, 7
  br i1 %late, label %leave, label %rest
leave:
  ret void
rest:
  %eighth = call i32 @sm_active_lanes() convergent
  call void @put(ptr addrspace(1) %out, i32 7, i32 %eighth)
  ret void
}

define internal void @put(ptr addrspace(1) %out, i32 %place, i32 %mask) alwaysinline {
  %address = getelementptr i32, ptr addrspace(1) %out, i32 %place
  store volatile i32 %mask, ptr addrspace(1) %address
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) convergent
declare i32 @llvm.nvvm.redux.sync.add(i32, i32) convergent

!nvvm.annotations = !{!0}
!0 = !{ptr @sm_entry_1, !"kernel", i32 1}
