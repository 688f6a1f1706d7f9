import CMetalAttention

/// What the parameters of every kernel on a quantized cache have;
/// `ShaderTypes.h` says what it means.
protocol HadamardParams {
  var head_dim: UInt32 { get }
  var num_kv_heads: UInt32 { get }
  var cache_capacity: UInt32 { get }
  var is_sliding: UInt32 { get }
  var scale_factor_d512: Float { get }
  var codebook_bits: UInt32 { get }
}

extension HadamardQuantizeHbParams: HadamardParams {}
extension HadamardQuantizeSeqParams: HadamardParams {}
extension HadamardDequantizeParams: HadamardParams {}
