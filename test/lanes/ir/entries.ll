; A loop that lanes enter at two places.
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
  %odd = and i32 %value, 1
  %isOdd = icmp ne i32 %odd, 0
  br i1 %isOdd, label %second, label %first
first:
  %y1 = phi i32 [ 0, %entry ], [ %y2n, %second ]
  %n1 = phi i32 [ %value, %entry ], [ %n2n, %second ]
  %y1n = add i32 %y1, 10
  br label %second
second:
  %y2 = phi i32 [ 0, %entry ], [ %y1n, %first ]
  %n2 = phi i32 [ %value, %entry ], [ %n1, %first ]
  %y2n = add i32 %y2, 1
  %n2n = add i32 %n2, -1
  %more = icmp sgt i32 %n2, 0
  br i1 %more, label %first, label %done
done:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %y2n, ptr %to
  ret void
}
