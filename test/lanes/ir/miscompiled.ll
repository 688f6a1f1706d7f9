; What LLVM 19 generates wrong code for where there is AVX-512: masks with known lanes, and a product of what is shifted
; with a constant that has zeros.
define i8 @splat(i1 %one) {
  %first = insertelement <8 x i1> poison, i1 %one, i64 0
  %all = shufflevector <8 x i1> %first, <8 x i1> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 poison, i32 poison, i32 poison, i32 poison>
  %lower = shufflevector <8 x i1> %all, <8 x i1> <i1 poison, i1 poison, i1 poison, i1 poison, i1 false, i1 false, i1 true, i1 false>, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15>
  %bits = bitcast <8 x i1> %lower to i8
  ret i8 %bits
}
define i8 @lower(i8 %given) {
  %mask = bitcast i8 %given to <8 x i1>
  %lower = shufflevector <8 x i1> zeroinitializer, <8 x i1> %mask, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 0, i32 1, i32 2, i32 poison>
  %set = shufflevector <8 x i1> %lower, <8 x i1> splat (i1 true), <8 x i32> <i32 2, i32 1, i32 8, i32 3, i32 4, i32 5, i32 6, i32 9>
  %bits = bitcast <8 x i1> %set to i8
  ret i8 %bits
}
define i8 @longer(i8 %given) {
  %mask = trunc i8 %given to i4
  %four = bitcast i4 %mask to <4 x i1>
  %eight = shufflevector <4 x i1> %four, <4 x i1> zeroinitializer, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %bits = bitcast <8 x i1> %eight to i8
  ret i8 %bits
}
define i8 @product(i8 %given) {
  %one = insertelement <4 x i8> poison, i8 %given, i64 0
  %all = shufflevector <4 x i8> %one, <4 x i8> poison, <4 x i32> zeroinitializer
  %shifted = shl <4 x i8> %all, <i8 0, i8 1, i8 2, i8 3>
  %products = mul <4 x i8> %shifted, <i8 6, i8 3, i8 1, i8 0>
  %sum = call i8 @llvm.vector.reduce.add.v4i8(<4 x i8> %products)
  ret i8 %sum
}
declare i8 @llvm.vector.reduce.add.v4i8(<4 x i8>)
