; Each half of the lanes has a row of 48 bytes, of which a lane reads a word at a multiple of its bits, which memory tells;
; then a word three times as far; the odd lanes read one more, and one where a number says that each of them has loaded.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i32 @llvm.umin.i32(i32, i32)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %table = getelementptr i8, ptr %group, i64 2048
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  %width = getelementptr i32, ptr %in, i64 3
  %bits = load i32, ptr %width
  %number = lshr i32 %lane, 4
  %rowBytes = mul i32 %number, 48
  %rowAt = zext i32 %rowBytes to i64
  %row = getelementptr i8, ptr %table, i64 %rowAt
  %ofHalf = and i32 %lane, 15
  %bit = mul i32 %ofHalf, %bits
  %piece = lshr i32 %bit, 4
  %last = call i32 @llvm.umin.i32(i32 %piece, i32 22)
  %twice = shl i32 %last, 1
  %place = zext i32 %twice to i64
  %near = getelementptr i8, ptr %row, i64 %place
  %word = load i32, ptr %near, align 2
  %further = mul i32 %piece, 6
  %placeFar = zext i32 %further to i64
  %far = getelementptr i8, ptr %row, i64 %placeFar
  %wordFar = load i32, ptr %far, align 2
  %sum = add i32 %word, %wordFar
  %odd = trunc i32 %value to i1
  br i1 %odd, label %some, label %end
some:
  %pieceOdd = lshr i32 %bit, 5
  %bytesOdd = shl i32 %pieceOdd, 1
  %placeOdd = zext i32 %bytesOdd to i64
  %fromOdd = getelementptr i8, ptr %row, i64 %placeOdd
  %wordOdd = load i32, ptr %fromOdd, align 2
  %more = mul i32 %wordOdd, 7
  %few = and i32 %value, 7
  %loaded = zext i32 %few to i64
  %fromLoaded = getelementptr i32, ptr %row, i64 %loaded
  %wordLoaded = load i32, ptr %fromLoaded, align 4
  %both = add i32 %more, %wordLoaded
  %sums = add i32 %sum, %both
  br label %end
end:
  %result = phi i32 [ %sum, %entry ], [ %sums, %some ]
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %result, ptr %to
  ret void
}
