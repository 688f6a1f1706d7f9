/// Functions of the language's library, which a source may overload for types of its own: in `using namespace metal` a
/// call inside such a function is most often one of the library's.
enum LibraryFunctions {
  static let names = Set(
    """
    abs absdiff acos acosh addsat all any asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh cospi cross ctz
    degrees determinant distance distance_squared divide dot exp exp10 exp2 extract_bits fabs faceforward fdim floor fma
    fmax fmax3 fmedian3 fmin fmin3 fmod fract frexp hadd ilogb insert_bits isfinite isinf isnan isnormal isordered
    isunordered ldexp length length_squared log log10 log2 mad24 madhi madsat max max3 median3 min min3 mix modf mul24
    mulhi nextafter normalize popcount pow powr quad_sum radians reflect refract reverse_bits rhadd rint rotate round
    rsqrt saturate select sign signbit simd_all simd_and simd_any simd_broadcast simd_max simd_min simd_or
    simd_prefix_exclusive_sum simd_prefix_inclusive_sum simd_product simd_shuffle simd_shuffle_down simd_shuffle_up
    simd_shuffle_xor simd_sum simd_xor sin sincos sinh sinpi smoothstep sqrt step subsat tan tanh tanpi transpose trunc
    """.split { $0 == " " || $0 == "\n" }.map(String.init))
}
