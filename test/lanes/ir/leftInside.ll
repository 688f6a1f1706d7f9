; A loop that ends only in one inside of it: from there lanes leave both, or begin a turn of the outer one.
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
  %value = load i32, ptr %from
  br label %outer
outer:
  %n0 = phi i32 [ %value, %entry ], [ %n3, %again ]
  %sum0 = phi i32 [ 0, %entry ], [ %sum3, %again ]
  br label %inner
inner:
  %n1 = phi i32 [ %n0, %outer ], [ %n2, %more ]
  %sum1 = phi i32 [ %sum0, %outer ], [ %sum2, %more ]
  %rest = srem i32 %n1, 3
  %leaves = icmp eq i32 %rest, 0
  br i1 %leaves, label %again, label %more
more:
  %sum2 = add i32 %sum1, %n1
  %n2 = add i32 %n1, -1
  %ends = icmp slt i32 %n2, 4
  br i1 %ends, label %done, label %inner
again:
  %sum3 = add i32 %sum1, 100
  %n3 = add i32 %n1, -1
  br label %outer
done:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %sum2, ptr %to
  ret void
}
