; Lanes ask for lanes by what they loaded, of 32 bits and of 16; and a loop asks for one lane after another.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
declare i32 @sm_shuffle_32(i32, i32) #0
declare i16 @sm_shuffle_16(i16, i32) #0
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
  %twice = mul i32 %lane, 3
  %other = call i32 @sm_shuffle_32(i32 %twice, i32 %value)
  %narrow = trunc i32 %twice to i16
  %half = call i16 @sm_shuffle_16(i16 %narrow, i32 %value)
  %wide = zext i16 %half to i32
  %sum = add i32 %other, %wide
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %total = phi i32 [ %sum, %entry ], [ %more, %loop ]
  %share = call i32 @sm_shuffle_32(i32 %value, i32 %k)
  %product = mul i32 %share, %k
  %more = add i32 %total, %product
  %next = add i32 %k, 1
  %again = icmp slt i32 %next, %turns
  br i1 %again, label %loop, label %end
end:
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %more, ptr %to
  ret void
}
attributes #0 = { convergent nounwind memory(none) }
