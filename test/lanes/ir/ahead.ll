; Independent threads that go through rows of memory: each adds one to its word of every row.
declare void @sm_kernel(i32, i1)
declare void @sm_independent()
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  call void @sm_independent()
  %lane = call i32 @sm_lane()
  %index = zext i32 %lane to i64
  br label %loop
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %first = shl i64 %row, 5
  %word = add i64 %first, %index
  %place = getelementptr i32, ptr %group, i64 %word
  %there = load i32, ptr %place, align 4
  %more = add i32 %there, 1
  store i32 %more, ptr %place, align 4
  %next = add i64 %row, 1
  %done = icmp eq i64 %next, 10000
  br i1 %done, label %end, label %loop
end:
  ret void
}
