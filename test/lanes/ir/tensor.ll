; Products of 8x8 matrices, and matrices in shared memory. Each entry stores what it has last.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [4096 x i16] undef, align 16

define linkonce_odr i32 @sm_transposed(i32 %share) noinline convergent nounwind memory(none) {
  %result = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %share) convergent nounwind memory(none)
  ret i32 %result
}
define linkonce_odr i32 @sm_row_pair(ptr %matrix, i64 %stride) noinline convergent nounwind memory(read) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %wide = zext i32 %lane to i64
  %row = lshr i64 %wide, 2
  %quad = and i64 %wide, 3
  %first = mul i64 %row, %stride
  %column = shl i64 %quad, 1
  %place = add i64 %first, %column
  %address = getelementptr i16, ptr %matrix, i64 %place
  %pair = load i32, ptr %address, align 2
  ret i32 %pair
}
define linkonce_odr <2 x float> @sm_product_bf16(i32 %left, i32 %right, <2 x float> %sum) noinline convergent nounwind memory(none) {
  %a = extractelement <2 x float> %sum, i32 0
  %b = extractelement <2 x float> %sum, i32 1
  %all = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $9};", "=f,=f,=f,=f,r,r,r,f,f,f"(i32 %left, i32 0, i32 %right, float %a, float %b, float 0.0) convergent nounwind memory(none)
  %x = extractvalue { float, float, float, float } %all, 0
  %y = extractvalue { float, float, float, float } %all, 1
  %one = insertelement <2 x float> poison, float %x, i32 0
  %result = insertelement <2 x float> %one, float %y, i32 1
  ret <2 x float> %result
}
define linkonce_odr <2 x float> @sm_product_f16(i32 %left, i32 %right, <2 x float> %sum) noinline convergent nounwind memory(none) {
  %a = extractelement <2 x float> %sum, i32 0
  %b = extractelement <2 x float> %sum, i32 1
  %all = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $9};", "=f,=f,=f,=f,r,r,r,f,f,f"(i32 %left, i32 0, i32 %right, float %a, float %b, float 0.0) convergent nounwind memory(none)
  %x = extractvalue { float, float, float, float } %all, 0
  %y = extractvalue { float, float, float, float } %all, 1
  %one = insertelement <2 x float> poison, float %x, i32 0
  %result = insertelement <2 x float> %one, float %y, i32 1
  ret <2 x float> %result
}
; The header's body is more; here only what becomes of the call counts.
define linkonce_odr <2 x float> @sm_product_tf32_parts(<2 x float> %low, <2 x float> %high, <2 x float> %right, <2 x float> %sum) noinline convergent nounwind memory(none) {
  %a = call <2 x float> asm "half.empty $0, $1, $2, $3, $4;", "=l,l,l,l,l"(<2 x float> %low, <2 x float> %high, <2 x float> %right, <2 x float> %sum) convergent nounwind memory(none)
  ret <2 x float> %a
}

; Two blocks of rows in two steps: one instruction.
define ptx_kernel void @sm_entry_1(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %m = add i32 %l, 1
  %s = add i32 %r, 1
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_bf16(i32 %m, i32 %r, <2 x float> zeroinitializer) convergent
  %c = call <2 x float> @sm_product_bf16(i32 %m, i32 %s, <2 x float> %a) convergent
  %d = call <2 x float> @sm_product_bf16(i32 %l, i32 %s, <2 x float> %b) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %c, <2 x float> %d)
  ret void
}

; The second has the first as its sum: two steps of one right factor, and no two blocks.
define ptx_kernel void @sm_entry_2(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %m = add i32 %l, 1
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_bf16(i32 %m, i32 %r, <2 x float> %a) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %b, <2 x float> %b)
  ret void
}

; Another right factor, and a sum of which more is needed: both stay.
define ptx_kernel void @sm_entry_3(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %s = add i32 %r, 1
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_bf16(i32 %l, i32 %s, <2 x float> %a) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %a, <2 x float> %b)
  ret void
}

; Parts of tf32: two blocks, an instruction a part, and no two steps.
define ptx_kernel void @sm_entry_4(ptr addrspace(1) %out, <2 x float> %l, <2 x float> %r) convergent {
  %m = fadd <2 x float> %l, %r
  %a = call <2 x float> @sm_product_tf32_parts(<2 x float> %l, <2 x float> %m, <2 x float> %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_tf32_parts(<2 x float> %m, <2 x float> %l, <2 x float> %r, <2 x float> zeroinitializer) convergent
  %c = call <2 x float> @sm_product_tf32_parts(<2 x float> %l, <2 x float> %m, <2 x float> %m, <2 x float> %a) convergent
  %d = call <2 x float> @sm_product_tf32_parts(<2 x float> %m, <2 x float> %l, <2 x float> %m, <2 x float> %b) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %c, <2 x float> %d)
  ret void
}

; Two blocks of which the first is needed before the second, which stay apart.
define ptx_kernel void @sm_entry_5(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %bits = bitcast <2 x float> %a to i64
  %m = trunc i64 %bits to i32
  %b = call <2 x float> @sm_product_bf16(i32 %m, i32 %r, <2 x float> zeroinitializer) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %a, <2 x float> %b)
  ret void
}

; Rows at multiples of 16 bytes, transposed; the same as they are; rows at odd places; and memory of any kind.
define ptx_kernel void @sm_entry_6(ptr addrspace(1) %out, ptr %any, i64 %tile) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %a = call i32 @sm_row_pair(ptr %matrix, i64 40) convergent
  %b = call i32 @sm_transposed(i32 %a) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %b)
  %c = call i32 @sm_row_pair(ptr %matrix, i64 40) convergent
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %c)
  %odd = getelementptr i16, ptr %matrix, i64 1
  %d = call i32 @sm_row_pair(ptr %odd, i64 40) convergent
  %e = call i32 @sm_transposed(i32 %d) convergent
  call void @keep(ptr addrspace(1) %out, i32 2, i32 %e)
  %f = call i32 @sm_row_pair(ptr %any, i64 40) convergent
  %g = call i32 @sm_transposed(i32 %f) convergent
  call void @keep(ptr addrspace(1) %out, i32 3, i32 %g)
  ret void
}

; Four matrices at once, then one, and two behind a store.
define ptx_kernel void @sm_entry_7(ptr addrspace(1) %out, i64 %tile) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %l0 = call i32 @sm_row_pair(ptr %p0, i64 40) convergent
  %t0 = call i32 @sm_transposed(i32 %l0) convergent
  %p1 = getelementptr i8, ptr %matrix, i64 640
  %l1 = call i32 @sm_row_pair(ptr %p1, i64 40) convergent
  %t1 = call i32 @sm_transposed(i32 %l1) convergent
  %p2 = getelementptr i8, ptr %matrix, i64 16
  %l2 = call i32 @sm_row_pair(ptr %p2, i64 40) convergent
  %t2 = call i32 @sm_transposed(i32 %l2) convergent
  %p3 = getelementptr i8, ptr %matrix, i64 656
  %l3 = call i32 @sm_row_pair(ptr %p3, i64 40) convergent
  %t3 = call i32 @sm_transposed(i32 %l3) convergent
  %p4 = getelementptr i8, ptr %matrix, i64 32
  %l4 = call i32 @sm_row_pair(ptr %p4, i64 40) convergent
  %t4 = call i32 @sm_transposed(i32 %l4) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %t0)
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %t1)
  call void @keep(ptr addrspace(1) %out, i32 2, i32 %t2)
  call void @keep(ptr addrspace(1) %out, i32 3, i32 %t3)
  call void @keep(ptr addrspace(1) %out, i32 4, i32 %t4)
  %p5 = getelementptr i8, ptr %matrix, i64 48
  %l5 = call i32 @sm_row_pair(ptr %p5, i64 40) convergent
  %t5 = call i32 @sm_transposed(i32 %l5) convergent
  %p6 = getelementptr i8, ptr %matrix, i64 64
  %l6 = call i32 @sm_row_pair(ptr %p6, i64 40) convergent
  %t6 = call i32 @sm_transposed(i32 %l6) convergent
  call void @keep(ptr addrspace(1) %out, i32 5, i32 %t5)
  call void @keep(ptr addrspace(1) %out, i32 6, i32 %t6)
  ret void
}

; Right factors of two steps of two sums, in the order of the steps: four at once, those of a sum behind one another.
define ptx_kernel void @sm_entry_8(ptr addrspace(1) %out, i64 %tile, i32 %l, i32 %m) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %r0 = call i32 @sm_row_pair(ptr %p0, i64 40) convergent
  %p1 = getelementptr i8, ptr %matrix, i64 640
  %r1 = call i32 @sm_row_pair(ptr %p1, i64 40) convergent
  %p2 = getelementptr i8, ptr %matrix, i64 16
  %r2 = call i32 @sm_row_pair(ptr %p2, i64 40) convergent
  %p3 = getelementptr i8, ptr %matrix, i64 656
  %r3 = call i32 @sm_row_pair(ptr %p3, i64 40) convergent
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r0, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_bf16(i32 %l, i32 %r1, <2 x float> zeroinitializer) convergent
  %c = call <2 x float> @sm_product_bf16(i32 %m, i32 %r2, <2 x float> %a) convergent
  %d = call <2 x float> @sm_product_bf16(i32 %m, i32 %r3, <2 x float> %b) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %c, <2 x float> %d)
  ret void
}

; Three steps of one sum: two of them at once.
define ptx_kernel void @sm_entry_9(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_bf16(i32 %r, i32 %l, <2 x float> %a) convergent
  %c = call <2 x float> @sm_product_bf16(i32 %r, i32 %r, <2 x float> %b) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %c, <2 x float> %c)
  ret void
}

; One right factor of bfloats and of halves.
define ptx_kernel void @sm_entry_10(ptr addrspace(1) %out, i32 %l, i32 %r) convergent {
  %a = call <2 x float> @sm_product_bf16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  %b = call <2 x float> @sm_product_f16(i32 %l, i32 %r, <2 x float> zeroinitializer) convergent
  call void @put(ptr addrspace(1) %out, <2 x float> %a, <2 x float> %b)
  ret void
}

; Rows at two distances.
define ptx_kernel void @sm_entry_11(ptr addrspace(1) %out, i64 %tile) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %l0 = call i32 @sm_row_pair(ptr %p0, i64 40) convergent
  %t0 = call i32 @sm_transposed(i32 %l0) convergent
  %p1 = getelementptr i8, ptr %matrix, i64 16
  %l1 = call i32 @sm_row_pair(ptr %p1, i64 48) convergent
  %t1 = call i32 @sm_transposed(i32 %l1) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %t0)
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %t1)
  ret void
}

; A fourth that is not as far behind the third as the second behind the first.
define ptx_kernel void @sm_entry_12(ptr addrspace(1) %out, i64 %tile) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %l0 = call i32 @sm_row_pair(ptr %p0, i64 40) convergent
  %t0 = call i32 @sm_transposed(i32 %l0) convergent
  %p1 = getelementptr i8, ptr %matrix, i64 640
  %l1 = call i32 @sm_row_pair(ptr %p1, i64 40) convergent
  %t1 = call i32 @sm_transposed(i32 %l1) convergent
  %p2 = getelementptr i8, ptr %matrix, i64 16
  %l2 = call i32 @sm_row_pair(ptr %p2, i64 40) convergent
  %t2 = call i32 @sm_transposed(i32 %l2) convergent
  %p3 = getelementptr i8, ptr %matrix, i64 704
  %l3 = call i32 @sm_row_pair(ptr %p3, i64 40) convergent
  %t3 = call i32 @sm_transposed(i32 %l3) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %t0)
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %t1)
  call void @keep(ptr addrspace(1) %out, i32 2, i32 %t2)
  call void @keep(ptr addrspace(1) %out, i32 3, i32 %t3)
  ret void
}

; Rows at multiples of 8 bytes, by their distance or where the first begins.
define ptx_kernel void @sm_entry_13(ptr addrspace(1) %out, i64 %tile) convergent {
  %offset = mul i64 %tile, 72
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %l0 = call i32 @sm_row_pair(ptr %p0, i64 36) convergent
  %t0 = call i32 @sm_transposed(i32 %l0) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %t0)
  %later = getelementptr i8, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 8
  %second = call i32 @sm_row_pair(ptr %later, i64 40) convergent
  %turned = call i32 @sm_transposed(i32 %second) convergent
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %turned)
  %third = call i32 @sm_row_pair(ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 36) convergent
  %turnedToo = call i32 @sm_transposed(i32 %third) convergent
  call void @keep(ptr addrspace(1) %out, i32 2, i32 %turnedToo)
  ret void
}

; What is asked for both ways.
define ptx_kernel void @sm_entry_14(ptr addrspace(1) %out, i64 %tile) convergent {
  %offset = mul i64 %tile, 80
  %matrix = getelementptr i16, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 %offset
  %p0 = getelementptr i8, ptr %matrix, i64 0
  %l0 = call i32 @sm_row_pair(ptr %p0, i64 40) convergent
  %t0 = call i32 @sm_transposed(i32 %l0) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %t0)
  call void @keep(ptr addrspace(1) %out, i32 1, i32 %l0)
  ret void
}

; Device memory.
define ptx_kernel void @sm_entry_15(ptr addrspace(1) %out, ptr addrspace(1) align 16 %from) convergent {
  %matrix = addrspacecast ptr addrspace(1) %from to ptr
  %pair = call i32 @sm_row_pair(ptr %matrix, i64 40) convergent
  %turned = call i32 @sm_transposed(i32 %pair) convergent
  call void @keep(ptr addrspace(1) %out, i32 0, i32 %turned)
  ret void
}

define internal void @put(ptr addrspace(1) %out, <2 x float> %a, <2 x float> %b) alwaysinline {
  store volatile <2 x float> %a, ptr addrspace(1) %out
  %next = getelementptr i8, ptr addrspace(1) %out, i64 8
  store volatile <2 x float> %b, ptr addrspace(1) %next
  ret void
}
define internal void @keep(ptr addrspace(1) %out, i32 %place, i32 %word) alwaysinline {
  %address = getelementptr i32, ptr addrspace(1) %out, i32 %place
  store volatile i32 %word, ptr addrspace(1) %address
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()

!nvvm.annotations = !{!0, !1, !2, !3, !4, !5, !6, !7, !8, !9, !10, !11, !12, !13, !14}
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
