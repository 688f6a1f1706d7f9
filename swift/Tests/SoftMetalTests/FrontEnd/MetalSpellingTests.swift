import Testing

@testable import SoftMetal

/// Messages name types and address spaces as Metal does.
@Suite struct MetalSpellingTests {
  @Test(arguments: [
    ("'const __global float *__private'", "'const device float *'"),
    ("'__private float *__private'", "'thread float *'"),
    ("'__private vec<unsigned int, 3>'", "'uint3'"),
    ("'metal::packed_vec<float, 3>'", "'packed_float3'"),
    ("'const __constant matrix<half, 2, 4> &'", "'constant half2x4 &'"),
    ("'__local S<vec<float, 4>> *'", "'threadgroup S<float4> *'"),
    ("'const __generic S &__private'", "'const S &'"),
    ("'__private uint4' (aka '__private vec<unsigned int, 4>')", "'uint4'"),
    ("no member named 'z' in 'vec<float, 2>'", "no member named 'z' in 'float2'"),
    ("expected \"a string\" of '__bf16'", "expected \"a string\" of 'bfloat'"),
    (
      "cannot initialize object parameter of type '__private S' with an expression of type '__global S'",
      "this member function is not qualified for an object in device memory"
    ),
  ])
  func types(message: String, expected: String) {
    #expect(MetalSpelling.of(message, "/headers") == expected)
  }
}
