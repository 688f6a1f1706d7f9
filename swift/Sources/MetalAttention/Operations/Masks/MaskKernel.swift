/// A kernel of `flash_attn_mask.metal`.
enum MaskKernel {
  enum Task: Int, CaseIterable {
    case causal
    case slidingWindow
    // Tiles of so many queries and keys, as attention has them.
    case classify64x32
    case classify64x16
    case classify32x16
    case classify16x16

    /// Nil for tiles that no head size has.
    static func classify(_ tiles: FlashAttnTiles) -> Task? {
      switch (tiles.bq, tiles.bk) {
      case (64, 32): .classify64x32
      case (64, 16): .classify64x16
      case (32, 16): .classify32x16
      case (16, 16): .classify16x16
      default: nil
      }
    }
  }

  static let family = KernelFamily(
    sources: [("flash_attn_mask.metal", table.names)],
    // `are_runs`: a thread stores 16 bools at once.
    constants: [600],
    dtypes: dtypes)

  /// Dtypes of a mask.
  static let dtypes: [DType] = [.bf16, .f16, .bool]

  /// By task and dtype.
  private static let table = KernelTable(Task.allCases.count, dtypes.count) { place in
    name(Task.allCases[place[0]], dtypes[place[1]])
  }

  private static let indices = table.indices

  private static func name(_ task: Task, _ dtype: DType) -> String {
    switch task {
    case .causal: "build_causal_mask_\(dtype)"
    case .slidingWindow: "build_sliding_window_mask_\(dtype)"
    case .classify64x32: "classify_mask_tiles_\(dtype)_q64_k32"
    case .classify64x16: "classify_mask_tiles_\(dtype)_q64_k16"
    case .classify32x16: "classify_mask_tiles_\(dtype)_q32_k16"
    case .classify16x16: "classify_mask_tiles_\(dtype)_q16_k16"
    }
  }

  /// The index in `BuiltInKernel.all` of the kernel for a task.
  static func index(_ task: Task, _ dtype: DType) throws(StatusError) -> Int {
    guard let type = dtypes.firstIndex(of: dtype), let index = indices[task.rawValue, type] else {
      throw StatusError(StatusCode.unsupported, "\(arg: "mask") is \(dtype); it is \(family.dtypeList)")
    }
    return index
  }
}
