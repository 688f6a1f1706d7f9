; A loop looks up numbers in the lanes of three others: two repeat themselves, after 8 lanes and after 16, which is known at
; run time only.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i32 @sm_shuffle_32(i32, i32) #0
declare i32 @llvm.umin.i32(i32, i32)
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
  %turns = call i32 @llvm.umin.i32(i32 %lanes, i32 32)
  %in8 = and i32 %lane, 7
  %table8 = mul i32 %in8, %turns
  %in16 = and i32 %lane, 15
  %table16 = mul i32 %in16, %turns
  %table32 = mul i32 %lane, %turns
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %total = phi i32 [ 0, %entry ], [ %more, %loop ]
  %place = add i32 %value, %k
  %asked = and i32 %place, 31
  %of8 = call i32 @sm_shuffle_32(i32 %table8, i32 %asked)
  %of16 = call i32 @sm_shuffle_32(i32 %table16, i32 %asked)
  %of32 = call i32 @sm_shuffle_32(i32 %table32, i32 %asked)
  %scaled = mul i32 %total, 3
  %two = xor i32 %of8, %of16
  %three = add i32 %two, %of32
  %more = add i32 %scaled, %three
  %next = add i32 %k, 1
  %again = icmp slt i32 %next, %turns
  br i1 %again, label %loop, label %end
end:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %more, ptr %to
  ret void
}
attributes #0 = { convergent nounwind memory(none) }
