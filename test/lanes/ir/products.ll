; Two blocks of eight sums, each of four products, in loops inside a loop: what is multiplied lies in private memory.
declare void @sm_kernel(i32, i1)
declare double @sm_matrix_load_32(ptr, i64, i1) convergent
declare void @sm_matrix_store_32(double, ptr, i64, i1) convergent
declare double @sm_matrix_multiply(double, double, double) convergent memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %factors = alloca [8 x [2 x float]], align 16
  %sums = alloca [16 x [2 x float]], align 16
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %in = getelementptr i8, ptr %group, i64 1024
  %out = getelementptr i8, ptr %group, i64 16384
  br label %load
load:
  %l = phi i64 [ 0, %entry ], [ %nextl, %load ]
  %from = getelementptr [256 x i8], ptr %in, i64 %l
  %loaded = call double @sm_matrix_load_32(ptr %from, i64 8, i1 false)
  %loadedto = getelementptr [2 x float], ptr %factors, i64 %l
  store double %loaded, ptr %loadedto, align 4
  %nextl = add i64 %l, 1
  %loadeddone = icmp eq i64 %nextl, 8
  br i1 %loadeddone, label %clear, label %load
clear:
  %c = phi i64 [ 0, %load ], [ %nextc, %clear ]
  %cleared = getelementptr [2 x float], ptr %sums, i64 %c
  store double 0.0, ptr %cleared, align 4
  %nextc = add i64 %c, 1
  %cleareddone = icmp eq i64 %nextc, 16
  br i1 %cleareddone, label %sum, label %clear
sum:
  %d = phi i64 [ 0, %clear ], [ %nextd, %nextsum ]
  %column = getelementptr [256 x i8], ptr %in, i64 %d
  br label %product
product:
  %k = phi i64 [ 0, %sum ], [ %nextk, %nextproduct ]
  %productsdone = icmp eq i64 %k, 4
  br i1 %productsdone, label %nextsum, label %multiply
multiply:
  %matrix = getelementptr [2048 x i8], ptr %column, i64 %k
  %right = call double @sm_matrix_load_32(ptr %matrix, i64 8, i1 false)
  br label %block
block:
  %r = phi i64 [ 0, %multiply ], [ %nextr, %inblock ]
  %blocksdone = icmp eq i64 %r, 2
  br i1 %blocksdone, label %nextproduct, label %inblock
inblock:
  %factorrow = getelementptr [4 x [2 x float]], ptr %factors, i64 %r
  %factorplace = getelementptr [2 x float], ptr %factorrow, i64 %k
  %factor = load double, ptr %factorplace, align 4
  %row = getelementptr [8 x [2 x float]], ptr %sums, i64 %r
  %place = getelementptr [2 x float], ptr %row, i64 %d
  %before = load double, ptr %place, align 4
  %after = call double @sm_matrix_multiply(double %factor, double %right, double %before)
  store double %after, ptr %place, align 4
  %nextr = add i64 %r, 1
  br label %block
nextproduct:
  %nextk = add i64 %k, 1
  br label %product
nextsum:
  %nextd = add i64 %d, 1
  %sumsdone = icmp eq i64 %nextd, 8
  br i1 %sumsdone, label %write, label %sum
write:
  %w = phi i64 [ 0, %nextsum ], [ %nextw, %write ]
  %result = getelementptr [2 x float], ptr %sums, i64 %w
  %value = load double, ptr %result, align 4
  %to = getelementptr [256 x i8], ptr %out, i64 %w
  call void @sm_matrix_store_32(double %value, ptr %to, i64 8, i1 false)
  %nextw = add i64 %w, 1
  %written = icmp eq i64 %nextw, 16
  br i1 %written, label %end, label %write
end:
  ret void
}
