/// A combination of dtype, head size and mask that a kernel of
/// `flash_attn_prefill.metal` serves: every one of those below.
enum FlashAttnKernel {
  enum Mask {
    case none
    /// In the dtype of q; added to the scores.
    case additive
    /// True attends.
    case bool
  }

  static let family = KernelFamily(
    sources: [("flash_attn_prefill.metal", table.names)],
    // `align_Q`, `align_K`, `has_mask`, `do_causal`, `has_blk`, `has_options`, `is_aligned`, `has_tail`,
    // `splits_probabilities`.
    constants: [200, 201, 300, 301, 303, 304, 305, 306, 307],
    dtypes: dtypes,
    headDims: headDims.map(UInt32.init))

  static let dtypes: [DType] = [.bf16, .f16]
  static let headDims: [Int32] = [64, 80, 96, 112, 128, 192, 256, 512]

  /// By dtype, head size and whether the mask is bool. An additive mask and
  /// none share an entry point, told apart by `has_mask`.
  private static let table = KernelTable(dtypes.count, headDims.count, 2) { place in
    name(dtypes[place[0]], headDims[place[1]], isBoolMask: place[2] == 1)
  }

  private static let indices = table.indices

  static func name(_ dtype: DType, _ headDim: Int32, isBoolMask: Bool) -> String {
    "flash_attn_prefill_\(dtype)_d\(headDim)\(isBoolMask ? "_boolmask" : "")"
  }

  /// The index in `BuiltInKernel.all` of the kernel for a combination.
  @inline(__always)
  static func index(_ dtype: DType, _ headDim: Int32, _ mask: Mask) throws(StatusError) -> Int {
    guard
      let type = dtypes.firstIndex(of: dtype), let size = headDims.firstIndex(of: headDim),
      let index = indices[type, size, mask == .bool ? 1 : 0]
    else { throw unsupported(dtype, headDim) }
    return index
  }

  /// Checks that some kernel takes queries of the dtype; `headDim` is for the message.
  @inline(__always)
  static func requireServed(_ dtype: DType, _ headDim: Int32) throws(StatusError) {
    if !dtypes.contains(dtype) { throw unsupported(dtype, headDim) }
  }

  @inline(never)
  private static func unsupported(_ dtype: DType, _ headDim: Int32) -> StatusError {
    // For each half of D (16 + 16) rows of 128 floats and 16 bytes of padding.
    let reason =
      dtype == .f32
      ? ": in f32 K and V at D=256 take 33792 of 32768 bytes of threadgroup memory, so that no head size is made in it"
      : ""
    return StatusError(
      StatusCode.unsupported,
      "no kernel serves \(TensorName.q) of \(dtype) with D=\(headDim)\(reason); supported: \(family.dtypeList) with "
        + "D=\(family.headDimList), each "
        + "without a mask, with an additive mask in the dtype of q, and with a bool mask")
  }
}
