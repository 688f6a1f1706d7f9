target triple = "nvptx64-nvidia-cuda"

; Kernels that move device memory to threadgroup memory, each 16 bytes of a thread, and read 4 of another's.
@a = internal addrspace(3) global [512 x i8] undef, align 16
@b = internal addrspace(3) global [512 x i8] undef, align 16
@c = internal addrspace(3) global [512 x i8] undef, align 16
@d = internal addrspace(3) global [512 x i8] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.sync(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.memcpy.p3.p1.i64(ptr addrspace(3), ptr addrspace(1), i64, i1)

; Waits before the barrier behind which another thread reads.
define void @sm_entry_1(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %source = getelementptr [16 x i8], ptr addrspace(1) %from, i32 %thread
  %own = getelementptr [16 x i8], ptr addrspace(3) @a, i32 %thread
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 %own, ptr addrspace(1) align 16 %source, i64 16, i1 false)
  call void @llvm.nvvm.barrier.sync(i32 0)
  %value = load i32, ptr addrspace(3) @a
  store i32 %value, ptr addrspace(1) %to
  ret void
}

; A load and a store, and an access by the thread itself.
define void @sm_entry_2(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %source = getelementptr [16 x i8], ptr addrspace(1) %from, i32 %thread
  %own = getelementptr [16 x i8], ptr addrspace(3) @a, i32 %thread
  %moved = load <4 x i32>, ptr addrspace(1) %source, align 16
  store <4 x i32> %moved, ptr addrspace(3) %own, align 16
  %value = load volatile i32, ptr addrspace(3) %own
  store i32 %value, ptr addrspace(1) %to
  ret void
}

; What is needed elsewhere too, 8 bytes, and rows that begin anywhere, are loads and stores.
define void @sm_entry_3(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %moved = load <4 x i32>, ptr addrspace(1) %from, align 16
  store <4 x i32> %moved, ptr addrspace(3) @a, align 16
  store <4 x i32> %moved, ptr addrspace(1) %to, align 16
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %from, i64 8, i1 false)
  %odd = getelementptr i8, ptr addrspace(1) %from, i64 4
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 getelementptr (i8, ptr addrspace(3) @b, i64 32), ptr addrspace(1) align 4 %odd, i64 16, i1 false)
  ret void
}

; Two tiles in turns: one comes while the other is read.
define void @sm_entry_4(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %count) {
entry:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %both, %loop ]
  %source = getelementptr [32 x i8], ptr addrspace(1) %from, i32 %i
  %second = getelementptr i8, ptr addrspace(1) %source, i32 16
  %third = getelementptr i8, ptr addrspace(1) %source, i32 32
  call void @llvm.nvvm.barrier.sync(i32 0)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %second, i64 16, i1 false)
  %first.value = load volatile i32, ptr addrspace(3) @a
  call void @llvm.nvvm.barrier.sync(i32 0)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %third, i64 16, i1 false)
  %second.value = load volatile i32, ptr addrspace(3) @b
  %one = add i32 %sum, %first.value
  %both = add i32 %one, %second.value
  %next = add nuw i32 %i, 1
  %goes = icmp ult i32 %next, %count
  br i1 %goes, label %loop, label %end
end:
  store i32 %both, ptr addrspace(1) %to
  ret void
}

; A barrier of the SIMD group comes between: another SIMD group may read before it, so the wait is at the first barrier.
define void @sm_entry_5(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @llvm.nvvm.barrier.sync(i32 0)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %value = load i32, ptr addrspace(3) @a
  store i32 %value, ptr addrspace(1) %to
  ret void
}

; Nobody looks before the second barrier of the SIMD group, and one copy stays on its way behind it.
define void @sm_entry_6(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %second = getelementptr i8, ptr addrspace(1) %from, i64 16
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %second, i64 16, i1 false)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %first.value = load volatile i32, ptr addrspace(3) @a
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %second.value = load volatile i32, ptr addrspace(3) @b
  %both = add i32 %first.value, %second.value
  store i32 %both, ptr addrspace(1) %to
  ret void
}

; Where device memory changes, its copies have been made.
define void @sm_entry_7(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  store i32 1, ptr addrspace(1) %from
  call void @llvm.nvvm.barrier.sync(i32 0)
  %value = load i32, ptr addrspace(3) @a
  store i32 %value, ptr addrspace(1) %to
  ret void
}

; The ways that join have as many groups, though one copies otherwise.
define void @sm_entry_8(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %way) {
entry:
  %second = getelementptr i8, ptr addrspace(1) %from, i64 16
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %whole = icmp eq i32 %way, 0
  br i1 %whole, label %copied, label %stored
copied:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %second, i64 16, i1 false)
  br label %join
stored:
  %half = load volatile i64, ptr addrspace(1) %second
  store volatile i64 %half, ptr addrspace(3) @b
  br label %join
join:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %first.value = load volatile i32, ptr addrspace(3) @a
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %second.value = load volatile i32, ptr addrspace(3) @b
  %both = add i32 %first.value, %second.value
  store i32 %both, ptr addrspace(1) %to
  ret void
}

; In a loop, to places a constant number of bytes apart.
define void @sm_entry_9(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %count) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %own = getelementptr [16 x i8], ptr addrspace(3) @a, i32 %thread
  %later = getelementptr i8, ptr addrspace(3) %own, i32 144
  br label %loop
loop:
  %turn = phi i32 [0, %0], [%next, %loop]
  %source = getelementptr [64 x i8], ptr addrspace(1) %from, i32 %turn
  %behind = getelementptr i8, ptr addrspace(1) %source, i32 -32
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 %own, ptr addrspace(1) align 16 %source, i64 16, i1 false)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 %later, ptr addrspace(1) align 16 %behind, i64 16, i1 false)
  %next = add i32 %turn, 1
  %ends = icmp uge i32 %next, %count
  br i1 %ends, label %end, label %loop
end:
  ret void
}

; To threadgroup memory of which a generic address is known.
define void @sm_entry_10(ptr addrspace(1) %from, ptr %generic) {
  %own = addrspacecast ptr %generic to ptr addrspace(3)
  %later = getelementptr i8, ptr addrspace(3) %own, i32 144
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 %later, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  ret void
}

; Device memory changes between a load and the store of what it has.
define void @sm_entry_11(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %moved = load <4 x i32>, ptr addrspace(1) %from, align 16
  store i32 1, ptr addrspace(1) %to
  store <4 x i32> %moved, ptr addrspace(3) @a, align 16
  ret void
}

; A load that another block stores.
define void @sm_entry_12(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %way) {
entry:
  %moved = load <4 x i32>, ptr addrspace(1) %from, align 16
  %isLong = icmp eq i32 %way, 0
  br i1 %isLong, label %between, label %stored
between:
  %value = load volatile i32, ptr addrspace(3) @d
  br label %stored
stored:
  store <4 x i32> %moved, ptr addrspace(3) @a, align 16
  ret void
}

; What is volatile: a load, a store.
define void @sm_entry_13(ptr addrspace(1) %from) {
  %first = load volatile <4 x i32>, ptr addrspace(1) %from, align 16
  store <4 x i32> %first, ptr addrspace(3) @a, align 16
  %later = getelementptr i8, ptr addrspace(1) %from, i64 16
  %second = load <4 x i32>, ptr addrspace(1) %later, align 16
  store volatile <4 x i32> %second, ptr addrspace(3) @b, align 16
  ret void
}

; To a place that is no multiple of 16.
define void @sm_entry_14(ptr addrspace(1) %from) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 4 getelementptr (i8, ptr addrspace(3) @b, i64 4), ptr addrspace(1) align 16 %from, i64 16, i1 false)
  ret void
}

; What one way has begun since, the other has not: of the two, in either order, the shorter counts.
define void @sm_entry_15(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %way) {
entry:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %between = load volatile i32, ptr addrspace(3) @c
  %goes = icmp eq i32 %way, 0
  br i1 %goes, label %more, label %less
more:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @d, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %later = load volatile i32, ptr addrspace(3) @c
  br label %read
less:
  %device = load volatile i32, ptr addrspace(1) %from
  br label %read
read:
  %value = load volatile i32, ptr addrspace(3) @b
  store i32 %value, ptr addrspace(1) %to
  ret void
}

define void @sm_entry_16(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %way) {
entry:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @b, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %between = load volatile i32, ptr addrspace(3) @c
  %goes = icmp eq i32 %way, 0
  br i1 %goes, label %less, label %more
more:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @d, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %later = load volatile i32, ptr addrspace(3) @c
  br label %read
less:
  %device = load volatile i32, ptr addrspace(1) %from
  br label %read
read:
  %value = load volatile i32, ptr addrspace(3) @b
  store i32 %value, ptr addrspace(1) %to
  ret void
}

; A read of one of two variables.
define void @sm_entry_17(ptr addrspace(1) %from, i32 %way) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %isFirst = icmp eq i32 %way, 0
  %place = select i1 %isFirst, ptr addrspace(3) @a, ptr addrspace(3) @c
  %value = load volatile i32, ptr addrspace(3) %place
  ret void
}

; A function of which nothing is known.
declare void @other()
define void @sm_entry_18(ptr addrspace(1) %from) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  call void @other()
  %value = load volatile i32, ptr addrspace(1) %from
  ret void
}

; The end of the thread.
define void @sm_entry_19(ptr addrspace(1) %from) {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  ret void
}

; A function's argument, which may be of any memory.
define void @helper(ptr addrspace(1) %from, ptr %place) noinline {
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) align 16 @a, ptr addrspace(1) align 16 %from, i64 16, i1 false)
  %value = load volatile i32, ptr %place
  %device = load volatile i32, ptr addrspace(1) %from
  ret void
}

!nvvm.annotations = !{!0, !1, !2, !3, !4, !5, !6, !7, !8, !9, !10, !11, !12, !13, !14, !15, !16, !17, !18}
!0 = !{ptr @sm_entry_1, !"kernel", i32 1}
!1 = !{ptr @sm_entry_2, !"kernel", i32 1}
!2 = !{ptr @sm_entry_3, !"kernel", i32 1}
!3 = !{ptr @sm_entry_4, !"kernel", i32 1}
!4 = !{ptr @sm_entry_5, !"kernel", i32 1}
!5 = !{ptr @sm_entry_6, !"kernel", i32 1}
!6 = !{ptr @sm_entry_7, !"kernel", i32 1}
!7 = !{ptr @sm_entry_8, !"kernel", i32 1}
!8 = !{ptr @sm_entry_9, !"kernel", i32 1}
!9 = !{ptr @sm_entry_10, !"kernel", i32 1}
!10 = !{ptr @sm_entry_11, !"kernel", i32 1}
!11 = !{ptr @sm_entry_12, !"kernel", i32 1}
!12 = !{ptr @sm_entry_13, !"kernel", i32 1}
!13 = !{ptr @sm_entry_14, !"kernel", i32 1}
!14 = !{ptr @sm_entry_15, !"kernel", i32 1}
!15 = !{ptr @sm_entry_16, !"kernel", i32 1}
!16 = !{ptr @sm_entry_17, !"kernel", i32 1}
!17 = !{ptr @sm_entry_18, !"kernel", i32 1}
!18 = !{ptr @sm_entry_19, !"kernel", i32 1}
