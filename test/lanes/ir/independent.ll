; Threads that have nothing to do with each other: each computes two words of a pair of shorts and of what is there,
; written where both were read.
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
  %from = getelementptr <2 x i16>, ptr %in, i64 %index
  %to = getelementptr i32, ptr %out, i64 %index
  %pair = load <2 x i16>, ptr %from, align 4
  %there = load i32, ptr %to, align 4
  %a = extractelement <2 x i16> %pair, i64 0
  %b = extractelement <2 x i16> %pair, i64 1
  %a1 = mul i16 %a, 3
  %a2 = xor i16 %a1, %b
  %a3 = add i16 %a2, 7
  %a4 = shl i16 %a3, 2
  %b1 = add i16 %b, %a
  %b2 = mul i16 %b1, 5
  %b3 = lshr i16 %b2, 1
  %b4 = sub i16 %b3, %a
  %first = insertelement <2 x i16> poison, i16 %b4, i64 0
  %turned = insertelement <2 x i16> %first, i16 %a4, i64 1
  store <2 x i16> %turned, ptr %from, align 4
  %wide = zext i16 %a4 to i32
  %scaled = mul i32 %wide, 1000
  %high = sext i16 %b4 to i32
  %sum = add i32 %scaled, %high
  %all = add i32 %sum, %there
  store i32 %all, ptr %to, align 4
  ret void
}
