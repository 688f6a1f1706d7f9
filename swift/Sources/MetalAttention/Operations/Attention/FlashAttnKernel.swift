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
    name: "flashAttnPrefill",
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

/// How `flash_attn_prefill` partitions its work for a head size.
struct FlashAttnTiles {
  /// Query rows and key columns of a tile.
  let bq: Int32
  let bk: Int32
  /// SIMD groups of a threadgroup along query rows and the values of a head.
  let wm: UInt32
  let wn: UInt32

  /// Bytes of threadgroup memory: rows of 16-bit elements, padded by 16 bytes, and
  /// the scores that SIMD groups with parts of a row exchange. K and V have a tile each,
  /// beside as many columns of Q as there is room for, in sixteens. Where there is none,
  /// SIMD groups share no tile, and have halves of K, of V and of Q.
  func threadgroupMemory(_ headDim: Int32) -> Int32 {
    let parts = Int32(wn)
    let columns = headDim / parts
    let scores = parts == 1 ? 0 : parts * bq * bk * 4
    func rows(_ count: Int32, of columns: Int32) -> Int32 { parts * count * (columns + 8) * 2 }
    let keys = rows(2 * bk, of: columns)
    let room = 32768 - scores - keys
    if room < 0 { return rows(bq + 2 * bk, of: columns / 2) + scores }
    let columnsOfQ = (room / (parts * bq * 2) - 8) / 16 * 16
    return rows(bq, of: min(columns, columnsOfQ)) + keys + scores
  }

  /// The geometry for a head size that has kernels: as many rows and keys as 32 KiB of threadgroup memory and the
  /// registers of four SIMD groups have room for; 32 keys at D = 128 spill, and are no faster in causal prompts.
  static func forHeadDim(_ headDim: Int32) -> FlashAttnTiles {
    switch headDim {
    case ...112: FlashAttnTiles(bq: 64, bk: 32, wm: 4, wn: 1)
    case ...128: FlashAttnTiles(bq: 64, bk: 16, wm: 4, wn: 1)
    case ...256: FlashAttnTiles(bq: 32, bk: 16, wm: 2, wn: 2)
    default: FlashAttnTiles(bq: 16, bk: 16, wm: 1, wn: 4)
    }
  }
}
