import CMetalAttention

/// The parameters common to all kernels of the quantized cache, as
/// `ShaderTypes.h` documents them.
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

extension Packing {
  /// Whether codes of `bits` are packed so.
  @inline(__always)
  func has(_ bits: UInt32) -> Bool {
    switch self {
    case .nibble: bits == 4
    case .byte: bits == 5 || bits == 6 || bits == 8
    case .dense: bits == 2 || bits == 3 || bits == 5 || bits == 6
    }
  }

  /// Supported code widths in bits.
  var widths: [UInt32] { (1...8).filter(has) }
}

/// Width and packing of the codes of a quantized cache.
struct HadamardFormat {
  let packing: Packing
  /// Bits of a code.
  let bits: UInt32

  @inline(__always)
  init(
    bits: UInt32, _ bitsName: StaticString = "codebook_bits", packing: UInt32, _ packingName: StaticString = "packing"
  ) throws(StatusError) {
    guard let known = Packing(rawValue: packing), known.has(bits) else {
      throw Self.unsupported(bits, bitsName, packing, packingName)
    }
    self.packing = known
    self.bits = bits
  }

  private static func unsupported(
    _ bits: UInt32, _ bitsName: StaticString, _ packing: UInt32, _ packingName: StaticString
  ) -> StatusError {
    let supported = Packing.allCases.map { packing in
      "packing \(packing.rawValue) (\(packing)): \(packing.widths.map { "\($0)" }.joined(separator: ", ")) bits"
    }
    return StatusError(
      StatusCode.unsupported,
      "\(arg: .literal(bitsName)) \(bits) with \(arg: .literal(packingName)) \(packing) has no kernel; supported: \(supported.joined(separator: "; "))"
    )
  }

  /// Bits of a row that a code takes.
  var codeWidth: UInt32 { packing == .byte ? 8 : bits }
}

/// A quantized cache as the parameters of a call describe it: codes
/// [batch, num_kv_heads, cache_capacity, row bytes], of K and of V in formats of
/// their own, and norms [batch, num_kv_heads, cache_capacity, max(1, head_dim / 256)].
struct HadamardCache {
  let headDim: UInt32
  /// Of all batches, or of all pages.
  let norms: HeadMajor
  /// Head vectors of a token of all batches.
  let heads: UInt32
  private let batch: UInt32
  private let pages: HadamardPages?

  /// Checks head size and factor.
  /// - Parameter heads: those of all batches; neither they nor the head size are 0.
  init(
    _ params: some HadamardParams, _ k: HadamardStream, _ v: HadamardStream?, heads: UInt32, batch: UInt32,
    pages: HadamardPages? = nil
  ) throws(StatusError) {
    let headDim = params.head_dim
    try Self.requireSize(headDim, k.format)
    if let v { try Self.requireSize(headDim, v.format) }
    try require(
      params.scale_factor_d512.isFinite && params.scale_factor_d512 > 0, StatusCode.invalidArgument,
      "\(arg: "scale_factor_d512") is \(params.scale_factor_d512); it is finite and above 0, usually 1")
    self.headDim = headDim
    self.heads = heads
    self.batch = batch
    self.pages = pages
    let capacity = pages?.tokens ?? params.cache_capacity
    norms = HeadMajor(nHeads: pages?.heads ?? heads, capacity: capacity, rowSize: max(1, headDim / 256))
  }

  /// The cache of a call on `count` tokens from position `start` on, which it
  /// has; nil when there is nothing to do.
  /// - Parameter start: nil where positions in device memory say where tokens go.
  init?(
    _ params: some HadamardParams, _ k: HadamardStream, _ v: HadamardStream?, batch: UInt32, count: UInt32,
    from start: UInt32?, _ startName: Argument, pages: HadamardPages? = nil
  ) throws(StatusError) {
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    let heads = try CacheRange.heads(params.num_kv_heads, "num_kv_heads", batch: batch)
    if heads == 0 || params.head_dim == 0 || count == 0 { return nil }
    try self.init(params, k, v, heads: heads, batch: batch, pages: pages)
    if let start {
      try CacheRange.requireRun(
        of: count, "n_tokens", from: start, startName, capacity: params.cache_capacity, "cache_capacity",
        of: .packedK, isRing: isRing, "is_sliding")
    } else {
      try CacheRange.requireSlots(params.cache_capacity, "cache_capacity", of: .packedK)
    }
  }

  /// For messages: heads of a batch, and the batch where there is more than one.
  var headsFormula: Sentence { CacheRange.headsFormula(heads / batch, "num_kv_heads", batch: batch) }

  /// The codes of all batches, or of all pages, in a format whose rows are whole bytes.
  func packed(_ format: HadamardFormat) -> HeadMajor {
    HeadMajor(nHeads: norms.nHeads, capacity: norms.capacity, rowSize: Self.rowBytes(headDim, format))
  }

  private static func rowBytes(_ headDim: UInt32, _ format: HadamardFormat) -> UInt32 {
    UInt32(truncatingIfNeeded: UInt64(headDim) * UInt64(format.codeWidth) / 8)
  }

  private static func requireSize(_ headDim: UInt32, _ format: HadamardFormat) throws(StatusError) {
    let isOther = HadamardKernel.otherHeadDims.contains(headDim) && headDim.nonzeroBitCount == 1
    guard isOther || HadamardKernel.headDims.contains(headDim), UInt64(headDim) * UInt64(format.codeWidth) % 8 == 0
    else { throw unsupported(headDim, format) }
  }

  /// Checks that the tensors of a stream hold the whole cache.
  func requireRoom(in stream: HadamardStream) throws(StatusError) {
    let packed = packed(stream.format)
    try stream.packed.requireRoom(for: packed.elements, formula(packed, "row bytes"))
    try stream.norms.requireRoom(for: norms.elements, formula(norms, "norms of a token"))
  }

  private func formula(_ array: HeadMajor, _ row: StaticString) -> Sentence {
    if let pages { return "\(pages.formula) x \(row) \(array.rowSize)" }
    return "\(headsFormula) x \(arg: "cache_capacity") \(array.capacity) x \(row) \(array.rowSize)"
  }

  private static func unsupported(_ headDim: UInt32, _ format: HadamardFormat) -> StatusError {
    let others = HadamardKernel.otherHeadDims
    return StatusError(
      StatusCode.unsupported,
      "\(arg: "head_dim") \(headDim) has no kernel for codes of \(format.codeWidth) bits; supported: \(HadamardKernel.family.headDimList), and powers of two "
        + "from \(others.lowerBound) to \(others.upperBound) whose codes fill whole bytes")
  }
}
