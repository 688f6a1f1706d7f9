; Each half of the lanes asks one lane, which it knows at run time, for a row and reads that side by side; then the odd
; lanes ask alone.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i32 @sm_shuffle_32(i32, i32) #0
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %lane64 = zext i32 %lane to i64
  %second = getelementptr i8, ptr %in, i64 4
  %eight = load i32, ptr %second
  %mine = getelementptr i32, ptr %in, i64 %lane64
  %value = load i32, ptr %mine, align 4
  %own = lshr i32 %value, 3
  %half = lshr i32 %lane, 4
  %source = add i32 %eight, %half
  %given = call i32 @sm_shuffle_32(i32 %own, i32 %source) #0
  %row = and i32 %given, 1
  %row64 = zext i32 %row to i64
  %bytes = shl i64 %row64, 6
  %base = getelementptr i8, ptr %in, i64 %bytes
  %column = and i32 %lane, 15
  %column64 = zext i32 %column to i64
  %from = getelementptr i32, ptr %base, i64 %column64
  %word = load i32, ptr %from, align 4
  %thousands = mul i32 %row, 1000
  %sum = add i32 %word, %thousands
  %to = getelementptr i32, ptr %out, i64 %lane64
  store i32 %sum, ptr %to, align 4
  %odd = and i32 %lane, 1
  %isodd = icmp eq i32 %odd, 1
  br i1 %isodd, label %alone, label %end
alone:
  %other = sub i32 %source, 4
  %asked = call i32 @sm_shuffle_32(i32 %own, i32 %other) #0
  %low = and i32 %asked, 7
  %more = mul i32 %low, 100000
  %all = add i32 %sum, %more
  store i32 %all, ptr %to, align 4
  br label %end
end:
  ret void
}
attributes #0 = { convergent nounwind memory(none) }
