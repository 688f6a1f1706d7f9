; The odd of a row's lanes read where the row begins, which no other lane knows.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %row = lshr i32 %lane, 3
  %column = and i32 %lane, 7
  %own = getelementptr i32, ptr %in, i32 %lane
  %value = load i32, ptr %own
  %fivefold = mul i32 %value, 5
  %other.place = and i32 %fivefold, 31
  %other.from = getelementptr i32, ptr %in, i32 %other.place
  %other.value = load i32, ptr %other.from
  %bit = and i32 %value, 1
  %isOdd = icmp ne i32 %bit, 0
  br i1 %isOdd, label %odd, label %end
odd:
  %chosen = getelementptr i32, ptr %in, i32 %row
  %number = load i32, ptr %chosen
  %other = lshr i32 %number, 3
  %first = mul i32 %other, 8
  %place = add i32 %first, %column
  %index = zext i32 %place to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %found = load i32, ptr %from
  %to = getelementptr i32, ptr %out, i32 %lane
  %more = mul i32 %other.value, 100
  %sum = add i32 %found, %more
  store i32 %sum, ptr %to
  br label %end
end:
  ret void
}
