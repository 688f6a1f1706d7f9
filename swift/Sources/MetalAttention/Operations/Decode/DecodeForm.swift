/// How decode attention multiplies queries and keys.
enum DecodeForm {
  /// Each lane its columns of a key, summed over lanes: `flash_attn_decode.metal`.
  case lanes
  /// 8x8 matrices of a SIMD group: `flash_attn_decode_matrices.metal`.
  case matrices
}
