; Threads that have nothing to do with each other: a long chain for each, and a loop that needs its ends.
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
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %from = getelementptr i32, ptr %in, i64 %index
  %to = getelementptr i32, ptr %out, i64 %index
  %value = load i32, ptr %from, align 4
  %x0 = xor i32 %value, 77
  %y0 = mul i32 %x0, 3
  %x1 = xor i32 %y0, 78
  %y1 = mul i32 %x1, 5
  %x2 = xor i32 %y1, 79
  %y2 = mul i32 %x2, 7
  %x3 = xor i32 %y2, 80
  %y3 = mul i32 %x3, 9
  %x4 = xor i32 %y3, 81
  %y4 = mul i32 %x4, 11
  %x5 = xor i32 %y4, 82
  %y5 = mul i32 %x5, 13
  %x6 = xor i32 %y5, 83
  %y6 = mul i32 %x6, 15
  %x7 = xor i32 %y6, 84
  %y7 = mul i32 %x7, 17
  %x8 = xor i32 %y7, 85
  %y8 = mul i32 %x8, 19
  %x9 = xor i32 %y8, 86
  %y9 = mul i32 %x9, 21
  %x10 = xor i32 %y9, 87
  %y10 = mul i32 %x10, 23
  %x11 = xor i32 %y10, 88
  %y11 = mul i32 %x11, 25
  %x12 = xor i32 %y11, 89
  %y12 = mul i32 %x12, 27
  %x13 = xor i32 %y12, 90
  %y13 = mul i32 %x13, 29
  %x14 = xor i32 %y13, 91
  %y14 = mul i32 %x14, 31
  %x15 = xor i32 %y14, 92
  %y15 = mul i32 %x15, 33
  %x16 = xor i32 %y15, 93
  %y16 = mul i32 %x16, 35
  %x17 = xor i32 %y16, 94
  %y17 = mul i32 %x17, 37
  %x18 = xor i32 %y17, 95
  %y18 = mul i32 %x18, 39
  %x19 = xor i32 %y18, 96
  %y19 = mul i32 %x19, 41
  %isBelow = icmp slt i32 %y19, 0
  %chosen = select i1 %isBelow, i32 %y7, i32 %x11
  %turns = and i32 %lanes, 7
  br label %loop
loop:
  %turn = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %scaled = mul i32 %sum, 5
  %turned = xor i32 %scaled, %y19
  %more = add i32 %turned, %chosen
  %next = add i32 %turn, 1
  %done = icmp uge i32 %next, %turns
  br i1 %done, label %end, label %loop
end:
  store i32 %more, ptr %to, align 4
  ret void
}
