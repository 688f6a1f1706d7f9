/// A kernel of `flash_attn_mask.metal`.
enum MaskKernel {
  enum Task: Int, CaseIterable {
    case causal
    case slidingWindow
    /// Tiles of 32 queries and 16 keys.
    case classifyWide
    /// Tiles of 8 queries and 8 keys.
    case classifyNarrow
  }

  static let family = KernelFamily(
    name: "masks",
    sources: [("flash_attn_mask.metal", names)],
    dtypes: dtypes,
    operations: [.buildMask, .classifyMaskTiles],
    tensors: [.mask, .tileClasses])

  /// Dtypes of a mask.
  static let dtypes: [DType] = [.bf16, .f16, .bool]

  /// The entry points, by task and then dtype.
  private static let names: [String] = Task.allCases.flatMap { task in dtypes.map { name(task, $0) } }

  /// Of `names`, in `BuiltInKernel.all`.
  private static let indices = KernelFamily.indices(of: names)

  private static func name(_ task: Task, _ dtype: DType) -> String {
    switch task {
    case .causal: "build_causal_mask_\(dtype)"
    case .slidingWindow: "build_sliding_window_mask_\(dtype)"
    case .classifyWide: "classify_mask_tiles_\(dtype)_q32_k16"
    case .classifyNarrow: "classify_mask_tiles_\(dtype)_q8_k8"
    }
  }

  /// The index in `BuiltInKernel.all` of the kernel for a task.
  static func index(_ task: Task, _ dtype: DType) throws(StatusError) -> Int {
    guard let position = dtypes.firstIndex(of: dtype) else {
      throw StatusError(StatusCode.unsupported, "\(arg: "mask") is \(dtype); it is \(family.dtypeList)")
    }
    return Int(indices[dtypes.count * task.rawValue + position])
  }
}

/// The distinct planes [qL, kL] of a mask: a stride of 0 shares one among all
/// batches or heads.
struct MaskPlanes {
  private let batches: UInt32
  private let heads: UInt32

  @inline(__always)
  init(batches: Int32, heads: Int32, strides: (Int64, Int64, Int64)) {
    self.batches = strides.0 == 0 ? 1 : UInt32(bitPattern: batches)
    self.heads = strides.1 == 0 ? 1 : UInt32(bitPattern: heads)
  }

  @inline(__always)
  var count: Count { Count(batches) * heads }

  /// Tile classes of all planes.
  @inline(__always)
  func tiles(_ queryTiles: Int32, _ keyTiles: Int32) -> Count {
    count * UInt32(bitPattern: queryTiles) * UInt32(bitPattern: keyTiles)
  }

  /// For messages.
  func formula(_ queryTiles: Int32, _ keyTiles: Int32) -> Sentence {
    "\(batches) x \(heads) planes x \(arg: "NQ") \(queryTiles) x \(arg: "NK") \(keyTiles)"
  }
}
