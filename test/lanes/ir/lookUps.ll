; Lanes look numbers up in tables by indices of few bits: of 256 numbers, of 64 behind others, and in lanes that are left of
; 32.
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
  %spread = mul i32 %value, 173
  %place256 = and i32 %spread, 255
  %index256 = zext i32 %place256 to i64
  %from256 = getelementptr i32, ptr %table, i64 %index256
  %of256 = load i32, ptr %from256
  %place64 = lshr i32 %place256, 2
  %index64 = zext i32 %place64 to i64
  %table64 = getelementptr i32, ptr %table, i64 64
  %from64 = getelementptr i32, ptr %table64, i64 %index64
  %of64 = load i32, ptr %from64
  %sum = add i32 %of256, %of64
  %odd = trunc i32 %value to i1
  br i1 %odd, label %some, label %end
some:
  %place20 = lshr i32 %place256, 3
  %index20 = zext i32 %place20 to i64
  %from20 = getelementptr i32, ptr %table, i64 %index20
  %of20 = load i32, ptr %from20
  %more = mul i32 %of20, 7
  %sums = add i32 %sum, %more
  br label %end
end:
  %result = phi i32 [ %sum, %entry ], [ %sums, %some ]
  %to = getelementptr i32, ptr %out, i64 %index
  store i32 %result, ptr %to
  ret void
}
