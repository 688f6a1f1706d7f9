; Lanes look up the bytes of words in a table of 256, as often as a number says: all four bytes, and the odd lanes two of
; another word. Each lane changes a number of the table then, and all do it once more.
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
  %table = getelementptr i8, ptr %group, i64 2048
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  %odd = trunc i32 %value to i1
  %countAt = getelementptr i32, ptr %in, i64 5
  %count = load i32, ptr %countAt
  %own = mul i64 %index, 8
  %changed = getelementptr i32, ptr %table, i64 %own
  br label %again
again:
  %round = phi i32 [ 0, %entry ], [ %nextRound, %change ]
  %before = phi i32 [ 0, %entry ], [ %sums, %change ]
  br label %turns
turns:
  %turn = phi i32 [ 0, %again ], [ %nextTurn, %next ]
  %so.far = phi i32 [ %before, %again ], [ %sums, %next ]
  %spread = mul i32 %value, -1640531535
  %further = mul i32 %turn, 19088743
  %word = add i32 %spread, %further
  %shift2 = lshr i32 %word, 16
  %byte2 = and i32 %shift2, 255
  %at2 = zext i32 %byte2 to i64
  %from2 = getelementptr i32, ptr %table, i64 %at2
  %of2 = load i32, ptr %from2
  %byte0 = and i32 %word, 255
  %at0 = zext i32 %byte0 to i64
  %from0 = getelementptr i32, ptr %table, i64 %at0
  %of0 = load i32, ptr %from0
  %byte3 = lshr i32 %word, 24
  %at3 = zext i32 %byte3 to i64
  %from3 = getelementptr i32, ptr %table, i64 %at3
  %of3 = load i32, ptr %from3
  %shift1 = lshr i32 %word, 8
  %byte1 = and i32 %shift1, 255
  %at1 = zext i32 %byte1 to i64
  %from1 = getelementptr i32, ptr %table, i64 %at1
  %of1 = load i32, ptr %from1
  %times1 = mul i32 %of1, 3
  %times2 = mul i32 %of2, 5
  %times3 = mul i32 %of3, 7
  %sum01 = add i32 %of0, %times1
  %sum23 = add i32 %times2, %times3
  %four = add i32 %sum01, %sum23
  %scaled = mul i32 %so.far, 31
  %sum = add i32 %scaled, %four
  br i1 %odd, label %some, label %next
some:
  %other = xor i32 %word, 1515870810
  %shiftOdd = lshr i32 %other, 8
  %byteOdd = and i32 %shiftOdd, 255
  %atOdd = zext i32 %byteOdd to i64
  %fromOdd = getelementptr i32, ptr %table, i64 %atOdd
  %ofOdd = load i32, ptr %fromOdd
  %lastOdd = lshr i32 %other, 24
  %atLast = zext i32 %lastOdd to i64
  %fromLast = getelementptr i32, ptr %table, i64 %atLast
  %ofLast = load i32, ptr %fromLast
  %both = sub i32 %ofOdd, %ofLast
  %more = add i32 %sum, %both
  br label %next
next:
  %sums = phi i32 [ %sum, %turns ], [ %more, %some ]
  %nextTurn = add i32 %turn, 1
  %isLast = icmp eq i32 %nextTurn, %count
  br i1 %isLast, label %change, label %turns
change:
  store i32 %sums, ptr %changed
  %nextRound = add i32 %round, 1
  %isOver = icmp eq i32 %nextRound, 2
  br i1 %isOver, label %end, label %again
end:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sums, ptr %to
  ret void
}
