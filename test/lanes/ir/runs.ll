; Four lanes own a row: they load vectors side by side from rows in no order, read one word of the row together, divide
; alike, and store words side by side. Rows leave as a whole; then the odd lanes of those left go on alone.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %second = getelementptr i8, ptr %in, i64 4
  %eight = load i32, ptr %second
  %three = sub i32 %eight, 5
  %row = lshr i32 %lane, 2
  %left = urem i32 %row, %three
  %leaves = icmp eq i32 %left, 1
  br i1 %leaves, label %end, label %stays
stays:
  %quad = and i32 %lane, 3
  %thrice = mul i32 %row, 3
  %place = and i32 %thrice, 3
  %row64 = zext i32 %place to i64
  %quad64 = zext i32 %quad to i64
  %rowbytes = shl i64 %row64, 4
  %base = getelementptr i8, ptr %in, i64 %rowbytes
  %from = getelementptr [16 x i8], ptr %base, i64 %quad64
  %four = load <4 x i32>, ptr %from, align 4
  %a = extractelement <4 x i32> %four, i64 0
  %b = extractelement <4 x i32> %four, i64 1
  %c = extractelement <4 x i32> %four, i64 2
  %d = extractelement <4 x i32> %four, i64 3
  %b1 = mul i32 %b, 30
  %c1 = mul i32 %c, 900
  %d1 = mul i32 %d, 27000
  %ab = add i32 %a, %b1
  %cd = add i32 %c1, %d1
  %abcd = add i32 %ab, %cd
  %once = load i32, ptr %base, align 4
  %seven = mul i32 %once, 1000000
  %sum = add i32 %abcd, %seven
  %flip = xor i32 %row, 3
  %flip64 = zext i32 %flip to i64
  %first = shl i64 %flip64, 2
  %index = add i64 %first, %quad64
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sum, ptr %to, align 4
  %odd = and i32 %lane, 1
  %isodd = icmp eq i32 %odd, 1
  br i1 %isodd, label %alone, label %end
alone:
  %word = getelementptr i32, ptr %base, i64 %quad64
  %value = load i32, ptr %word, align 4
  %more = add i32 %sum, %value
  store i32 %more, ptr %to, align 4
  br label %end
end:
  ret void
}
