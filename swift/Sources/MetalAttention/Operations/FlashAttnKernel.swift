/// A combination of dtypes and head size that a kernel of
/// `flash_attn_prefill.metal` serves.
struct FlashAttnKernel {
  enum Mask {
    case none
    /// In the dtype of q; added to the scores.
    case additive
    /// True attends.
    case bool
  }

  let dtype: DType
  let headDim: Int32
  let mask: Mask

  /// `align_Q`, `align_K`, `has_mask`, `do_causal`, `has_blk`.
  static let constants: [UInt32] = [200, 201, 300, 301, 303]

  static let table = [
    FlashAttnKernel(dtype: .bf16, headDim: 256, mask: .none)
  ]

  /// The entry points behind the table, each once.
  static let names: [String] = table.map(\.name).reduce(into: []) { names, name in
    if !names.contains(name) { names.append(name) }
  }

  /// An additive mask and none share an entry point, told apart by `has_mask`.
  var name: String {
    "flash_attn_prefill_\(dtype)_d\(headDim)\(mask == .bool ? "_boolmask" : "")"
  }

  /// The index in `BuiltInKernel.all` of the kernel for a combination.
  @inline(__always)
  static func index(_ dtype: DType, _ headDim: Int32, _ mask: Mask) throws(StatusError) -> Int {
    for row in indices where row.kernel.headDim == headDim && row.kernel.dtype == dtype && row.kernel.mask == mask {
      return row.index
    }
    throw unsupported(dtype, headDim, mask)
  }

  private static let indices: ContiguousArray<(kernel: FlashAttnKernel, index: Int)> = ContiguousArray(
    table.map { kernel in
      (kernel, CopyKernel.table.count + (names.firstIndex(of: kernel.name) ?? 0))
    })

  @inline(never)
  private static func unsupported(_ dtype: DType, _ headDim: Int32, _ mask: Mask) -> StatusError {
    let rows = table.map { "\($0.dtype) D=\($0.headDim) mask \($0.mask)" }.joined(separator: ", ")
    return StatusError(
      StatusCode.unsupported, "no kernel serves \(dtype) D=\(headDim) mask \(mask); supported: \(rows)")
  }
}
