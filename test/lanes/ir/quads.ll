; A private array of eight float4, in halves of 64 bits as structs are passed: filled in a loop, added and subtracted at
; distances 1, 2 and 4 in nested loops, and read by its floats.
%quad = type { <4 x float> }
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %quads = alloca [8 x %quad], align 16
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %index = zext i32 %lane to i64
  %from = getelementptr i32, ptr %in, i64 %index
  %value = load i32, ptr %from
  br label %fill
fill:
  %i = phi i64 [ 0, %entry ], [ %i1, %filled ]
  %more = icmp ult i64 %i, 8
  br i1 %more, label %filled, label %steps
filled:
  %i32 = trunc i64 %i to i32
  %at = shl i32 %i32, 2
  %splat0 = insertelement <4 x i32> poison, i32 %at, i64 0
  %splat = shufflevector <4 x i32> %splat0, <4 x i32> poison, <4 x i32> zeroinitializer
  %numbers = add <4 x i32> %splat, <i32 1, i32 2, i32 3, i32 4>
  %value0 = insertelement <4 x i32> poison, i32 %value, i64 0
  %values = shufflevector <4 x i32> %value0, <4 x i32> poison, <4 x i32> zeroinitializer
  %products = mul <4 x i32> %values, %numbers
  %floats = sitofp <4 x i32> %products to <4 x float>
  %halves = bitcast <4 x float> %floats to <2 x double>
  %first = extractelement <2 x double> %halves, i64 0
  %last = extractelement <2 x double> %halves, i64 1
  %to = getelementptr [8 x %quad], ptr %quads, i64 0, i64 %i
  store double %first, ptr %to, align 16
  %to8 = getelementptr i8, ptr %to, i64 8
  store double %last, ptr %to8, align 8
  %i1 = add i64 %i, 1
  br label %fill
steps:
  %step = phi i64 [ 1, %fill ], [ %double, %stepped ]
  %again = icmp ult i64 %step, 8
  br i1 %again, label %blocks, label %read
blocks:
  %b = phi i64 [ 0, %steps ], [ %b1, %blocked ]
  %inside = icmp ult i64 %b, 8
  br i1 %inside, label %pairs, label %stepped
pairs:
  %end = add i64 %b, %step
  br label %pair
pair:
  %j = phi i64 [ %b, %pairs ], [ %j1, %paired ]
  %left = icmp ult i64 %j, %end
  br i1 %left, label %paired, label %blocked
paired:
  %k = add i64 %j, %step
  %p = getelementptr [8 x %quad], ptr %quads, i64 0, i64 %j
  %q = getelementptr [8 x %quad], ptr %quads, i64 0, i64 %k
  %low = load <2 x i64>, ptr %p, align 16
  %high = load <2 x i64>, ptr %q, align 16
  %lowf = bitcast <2 x i64> %low to <4 x float>
  %highf = bitcast <2 x i64> %high to <4 x float>
  %sum = fadd <4 x float> %lowf, %highf
  %difference = fsub <4 x float> %lowf, %highf
  %sumb = bitcast <4 x float> %sum to <2 x i64>
  %differenceb = bitcast <4 x float> %difference to <2 x i64>
  store <2 x i64> %sumb, ptr %p, align 16
  store <2 x i64> %differenceb, ptr %q, align 16
  %j1 = add i64 %j, 1
  br label %pair
blocked:
  %twice = shl i64 %step, 1
  %b1 = add i64 %b, %twice
  br label %blocks
stepped:
  %double = shl i64 %step, 1
  br label %steps
read:
  %r = phi i64 [ 0, %steps ], [ %r1, %reading ]
  %total = phi i32 [ 0, %steps ], [ %next, %reading ]
  %unread = icmp ult i64 %r, 32
  br i1 %unread, label %reading, label %done
reading:
  %place = getelementptr float, ptr %quads, i64 %r
  %float = load float, ptr %place, align 4
  %number = fptosi float %float to i32
  %r32 = trunc i64 %r to i32
  %factor = add i32 %r32, 1
  %weighted = mul i32 %number, %factor
  %tripled = mul i32 %total, 3
  %next = add i32 %tripled, %weighted
  %r1 = add i64 %r, 1
  br label %read
done:
  %target = getelementptr i32, ptr %out, i64 %index
  store i32 %total, ptr %target
  ret void
}
