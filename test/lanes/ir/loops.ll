; A loop that each lane leaves at its own time, by its condition or from its middle; what it computed last is used after.
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
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %limit = load i32, ptr %from
  br label %header
header:
  %k = phi i32 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i32 [ 0, %entry ], [ %added, %latch ]
  %goes = icmp slt i32 %k, %limit
  br i1 %goes, label %body, label %exit
body:
  %square = mul i32 %k, %k
  %added = add i32 %sum, %square
  %isFull = icmp sgt i32 %added, 100
  br i1 %isFull, label %full, label %latch
latch:
  %next = add i32 %k, 1
  br label %header
full:
  %negative = sub i32 0, %k
  br label %exit
exit:
  %result = phi i32 [ %sum, %header ], [ %negative, %full ]
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %result, ptr %to
  ret void
}
