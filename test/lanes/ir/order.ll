; Loops over independent threads, of which each moves a vector: as its bytes; rounded to bfloat, after it was passed as
; two doubles; scaled, rounded to half and stored; the same with its components turned around.
%vec = type { <4 x float> }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @moved(ptr %from, ptr %to, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %index = sext i32 %i to i64
  %a = getelementptr inbounds %vec, ptr %from, i64 %index
  %b = getelementptr inbounds %vec, ptr %to, i64 %index
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %b, ptr align 4 %a, i64 16, i1 false), !llvm.access.group !1
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end, !llvm.loop !2
end:
  ret void
}
define void @rounded(ptr %from, ptr %to, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %index = sext i32 %i to i64
  %a = getelementptr inbounds { double, double }, ptr %from, i64 %index
  %a1 = getelementptr inbounds i8, ptr %a, i64 8
  %xy = load double, ptr %a, align 4, !llvm.access.group !1
  %zw = load double, ptr %a1, align 4, !llvm.access.group !1
  %v0 = insertelement <2 x double> poison, double %xy, i64 0
  %v1 = insertelement <2 x double> %v0, double %zw, i64 1
  %v = bitcast <2 x double> %v1 to <4 x float>
  %x = extractelement <4 x float> %v, i64 0
  %y = extractelement <4 x float> %v, i64 1
  %z = extractelement <4 x float> %v, i64 2
  %w = extractelement <4 x float> %v, i64 3
  %bx = fptrunc float %x to bfloat
  %by = fptrunc float %y to bfloat
  %bz = fptrunc float %z to bfloat
  %bw = fptrunc float %w to bfloat
  %r0 = insertelement <4 x bfloat> poison, bfloat %bx, i64 0
  %r1 = insertelement <4 x bfloat> %r0, bfloat %by, i64 1
  %r2 = insertelement <4 x bfloat> %r1, bfloat %bz, i64 2
  %r3 = insertelement <4 x bfloat> %r2, bfloat %bw, i64 3
  %b = getelementptr inbounds <4 x bfloat>, ptr %to, i64 %index
  store <4 x bfloat> %r3, ptr %b, align 2, !llvm.access.group !1
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end, !llvm.loop !3
end:
  ret void
}
define void @scaled(ptr %from, ptr %to, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %index = sext i32 %i to i64
  %a = getelementptr inbounds %vec, ptr %from, i64 %index
  %v = load <4 x float>, ptr %a, align 4, !llvm.access.group !1
  %s = fmul <4 x float> %v, splat (float 2.500000e-01)
  %h = fptrunc <4 x float> %s to <4 x half>
  %b = getelementptr inbounds <4 x half>, ptr %to, i64 %index
  store <4 x half> %h, ptr %b, align 2, !llvm.access.group !1
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end, !llvm.loop !4
end:
  ret void
}
define void @turned(ptr %from, ptr %to, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %index = sext i32 %i to i64
  %a = getelementptr inbounds %vec, ptr %from, i64 %index
  %v = load <4 x float>, ptr %a, align 4, !llvm.access.group !1
  %s = fmul <4 x float> %v, <float 2.0, float 4.0, float 8.0, float 16.0>
  %t = shufflevector <4 x float> %s, <4 x float> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %b = getelementptr inbounds %vec, ptr %to, i64 %index
  store <4 x float> %t, ptr %b, align 4, !llvm.access.group !1
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end, !llvm.loop !5
end:
  ret void
}
!1 = distinct !{}
!2 = distinct !{!2, !6, !7}
!3 = distinct !{!3, !6, !7}
!4 = distinct !{!4, !6, !7}
!5 = distinct !{!5, !6, !7}
!6 = !{!"llvm.loop.parallel_accesses", !1}
!7 = !{!"llvm.loop.vectorize.enable", i1 true}
