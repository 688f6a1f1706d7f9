; A quotient and a remainder of the odd lanes alone: among the others are divisors of 0.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i32, ptr %in, i32 %lane
  %value = load i32, ptr %from
  %bit = and i32 %value, 1
  %isOdd = icmp ne i32 %bit, 0
  br i1 %isOdd, label %odd, label %end
odd:
  %quotient = udiv i32 1000000, %value
  %rest = srem i32 -1000, %value
  %scaled = mul i32 %quotient, 100
  %both = add i32 %scaled, %rest
  %to = getelementptr i32, ptr %out, i32 %lane
  store i32 %both, ptr %to
  br label %end
end:
  ret void
}
