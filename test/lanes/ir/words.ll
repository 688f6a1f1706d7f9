; Two words travel as 64 bits: through logic, an exchange and shifts, and are asked for alone and as a whole.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i64 @sm_shuffle_64(i64, i32) #0
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %low = load i32, ptr %from
  %high = mul i32 %low, 1000003
  %one = insertelement <2 x i32> poison, i32 %low, i64 0
  %pair = insertelement <2 x i32> %one, i32 %high, i64 1
  %bits = bitcast <2 x i32> %pair to i64
  %flipped = xor i64 %bits, 4886718345
  %next = xor i32 %lane, 1
  %other = call i64 @sm_shuffle_64(i64 %flipped, i32 %next)
  %lo = trunc i64 %other to i32
  %upper = lshr i64 %other, 32
  %hi = trunc i64 %upper to i32
  %middle = lshr i64 %other, 20
  %mid = trunc i64 %middle to i16
  %mid32 = zext i16 %mid to i32
  %product = mul i64 %other, 11400714819323198485
  %top = lshr i64 %product, 40
  %top32 = trunc i64 %top to i32
  %a = add i32 %lo, %hi
  %b = xor i32 %a, %mid32
  %c = add i32 %b, %top32
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %c, ptr %to
  ret void
}
attributes #0 = { convergent nounwind }
