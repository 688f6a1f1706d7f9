; Two tables, one after the other, of which a loop asks for the bytes of words: the second begins in front of the first.
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
  %last = getelementptr i8, ptr %group, i64 2048
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  %countAt = getelementptr i32, ptr %in, i64 5
  %count = load i32, ptr %countAt
  %roundsAt = getelementptr i32, ptr %in, i64 22
  %roundsLoaded = load i32, ptr %roundsAt
  %rounds = zext i32 %roundsLoaded to i64
  br label %again
again:
  %round = phi i64 [ 0, %entry ], [ %nextRound, %moved ]
  %before = phi i32 [ 0, %entry ], [ %sum, %moved ]
  %back = mul i64 %round, -40
  %table = getelementptr i32, ptr %last, i64 %back
  br label %turns
turns:
  %turn = phi i32 [ 0, %again ], [ %nextTurn, %turns ]
  %so.far = phi i32 [ %before, %again ], [ %sum, %turns ]
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
  %nextTurn = add i32 %turn, 1
  %isLast = icmp eq i32 %nextTurn, %count
  br i1 %isLast, label %moved, label %turns
moved:
  %nextRound = add i64 %round, 1
  %isOver = icmp uge i64 %nextRound, %rounds
  br i1 %isOver, label %end, label %again
end:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sum, ptr %to
  ret void
}
