/// A quantised cache as the parameters of a call describe it: codes
/// [num_kv_heads, cache_capacity, row bytes] and norms
/// [num_kv_heads, cache_capacity, max(1, head_dim / 256)].
struct HadamardCache {
  let format: HadamardFormat
  let headDim: UInt32
  let packed: HeadMajor
  let norms: HeadMajor

  /// Checks head size and factor; neither heads nor head size are 0.
  init(_ format: HadamardFormat, _ params: some HadamardParams) throws(StatusError) {
    let headDim = params.head_dim
    let isOther = HadamardKernel.otherHeadDims.contains(headDim) && headDim.nonzeroBitCount == 1
    let rowBits = UInt64(headDim) * UInt64(format.codeWidth)
    guard isOther || HadamardKernel.headDims.contains(headDim), rowBits % 8 == 0 else {
      throw Self.unsupported(headDim, format)
    }
    try require(
      params.scale_factor_d512.isFinite && params.scale_factor_d512 > 0, StatusCode.invalidArgument,
      "scale_factor_d512 is \(params.scale_factor_d512); it is finite and above 0, usually 1")
    self.format = format
    self.headDim = headDim
    packed = HeadMajor(
      nHeads: params.num_kv_heads, capacity: params.cache_capacity, rowSize: UInt32(rowBits / 8))
    norms = HeadMajor(
      nHeads: params.num_kv_heads, capacity: params.cache_capacity, rowSize: max(1, headDim / 256))
  }

  /// The cache of a call on `count` tokens from position `start` on, which it
  /// has; nil when there is nothing to do.
  init?(
    _ params: some HadamardParams, packing: UInt32, count: UInt32, from start: UInt32, _ startName: StaticString
  ) throws(StatusError) {
    let format = try HadamardFormat(bits: params.codebook_bits, packing: packing)
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    if params.num_kv_heads == 0 || params.head_dim == 0 || count == 0 { return nil }
    try self.init(format, params)
    try CacheRange.requireRun(
      of: count, "n_tokens", from: start, startName, capacity: params.cache_capacity, "cache_capacity", isRing: isRing)
  }

  /// Checks that the tensors of a stream hold the whole cache.
  func requireRoom(in stream: HadamardStream) throws(StatusError) {
    try stream.packed.requireRoom(for: packed.elements, formula(packed, "row bytes"))
    try stream.norms.requireRoom(for: norms.elements, formula(norms, "norms of a token"))
  }

  private func formula(_ array: HeadMajor, _ row: StaticString) -> String {
    "num_kv_heads \(array.nHeads) x cache_capacity \(array.capacity) x \(row) \(array.rowSize)"
  }

  private static func unsupported(_ headDim: UInt32, _ format: HadamardFormat) -> StatusError {
    let sizes = HadamardKernel.headDims.map { "\($0)" }.joined(separator: ", ")
    let others = HadamardKernel.otherHeadDims
    return StatusError(
      StatusCode.unsupported,
      "head_dim \(headDim) has no kernel for codes of \(format.codeWidth) bits; supported: \(sizes), and powers of two "
        + "from \(others.lowerBound) to \(others.upperBound) whose codes fill whole bytes")
  }
}
