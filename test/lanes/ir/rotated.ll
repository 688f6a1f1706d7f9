; A loop that decides at its end: what is stored before that is stored once an iteration.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %index = zext i32 %lane to i64
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i32, ptr %in, i64 %index
  %limit = load i32, ptr %from
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 0, ptr %to
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %old = load i32, ptr %to
  %new = add i32 %old, 3
  store i32 %new, ptr %to
  %next = add i32 %k, 1
  %again = icmp slt i32 %next, %limit
  br i1 %again, label %loop, label %end
end:
  ret void
}
