; Eight lanes own a row, from rows in no order: an offset in it is the lane's, shifted first and then cut, as instcombine
; writes lane % 8 * 4.
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
  %thrice = mul i32 %row, 3
  %from = and i32 %thrice, 3
  %to = xor i32 %row, 3
  %shifted = shl i32 %lane, 2
  %column = and i32 %shifted, 28
  %column64 = zext i32 %column to i64
  %from32 = shl i32 %from, 5
  %from64 = zext i32 %from32 to i64
  %fromrow = getelementptr i8, ptr %in, i64 %from64
  %source = getelementptr i8, ptr %fromrow, i64 %column64
  %value = load i32, ptr %source, align 4
  %to32 = shl i32 %to, 5
  %to64 = zext i32 %to32 to i64
  %torow = getelementptr i8, ptr %out, i64 %to64
  %target = getelementptr i8, ptr %torow, i64 %column64
  store i32 %value, ptr %target, align 4
  ret void
}
