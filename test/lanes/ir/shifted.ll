; Sixteen lanes read a row of codes: a lane's place is that of its first code, eight of which are a word.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %row = lshr i32 %lane, 4
  %other = xor i32 %row, 1
  %other64 = zext i32 %other to i64
  %start = shl i64 %other64, 6
  %codes = getelementptr i8, ptr %in, i64 %start
  %eight = shl i32 %lane, 3
  %code = and i32 %eight, 120
  %word = lshr exact i32 %code, 3
  %word64 = zext i32 %word to i64
  %source = getelementptr i32, ptr %codes, i64 %word64
  %value = load i32, ptr %source
  %index = zext i32 %lane to i64
  %to = getelementptr i32, ptr %out, i64 %index
  ; The place of the code has a second use, or LLVM would take the lane's number.
  %sum = add i32 %value, %code
  store i32 %sum, ptr %to
  ret void
}
