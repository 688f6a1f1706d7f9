; Products of one left matrix, of which the second is made of the first: by a product, and by the sum that it begins with.
declare void @sm_kernel(i32, i1)
declare double @sm_matrix_load_32(ptr, i64, i1) convergent
declare void @sm_matrix_store_32(double, ptr, i64, i1) convergent
declare double @sm_matrix_multiply(double, double, double) convergent memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %leftAt = getelementptr i8, ptr %group, i64 1024
  %rightAt = getelementptr i8, ptr %group, i64 1280
  %left = call double @sm_matrix_load_32(ptr %leftAt, i64 8, i1 false)
  %right = call double @sm_matrix_load_32(ptr %rightAt, i64 8, i1 false)
  %p = call double @sm_matrix_multiply(double %left, double %right, double 0.0)
  %q = call double @sm_matrix_multiply(double %p, double %right, double 0.0)
  %r = call double @sm_matrix_multiply(double %left, double %q, double 0.0)
  %s = call double @sm_matrix_multiply(double %right, double %left, double 0.0)
  %pair = bitcast double %s to <2 x float>
  %negated = fneg <2 x float> %pair
  %sum = bitcast <2 x float> %negated to double
  %t = call double @sm_matrix_multiply(double %right, double %right, double %sum)
  %at0 = getelementptr i8, ptr %group, i64 16384
  call void @sm_matrix_store_32(double %p, ptr %at0, i64 8, i1 false)
  %at1 = getelementptr i8, ptr %group, i64 16640
  call void @sm_matrix_store_32(double %q, ptr %at1, i64 8, i1 false)
  %at2 = getelementptr i8, ptr %group, i64 16896
  call void @sm_matrix_store_32(double %r, ptr %at2, i64 8, i1 false)
  %at3 = getelementptr i8, ptr %group, i64 17152
  call void @sm_matrix_store_32(double %s, ptr %at3, i64 8, i1 false)
  %at4 = getelementptr i8, ptr %group, i64 17408
  call void @sm_matrix_store_32(double %t, ptr %at4, i64 8, i1 false)
  ret void
}
