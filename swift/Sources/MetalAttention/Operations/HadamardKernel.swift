/// The kernels of the Hadamard-quantised cache: one for each task, packing and
/// head size, and for each task and packing one for any power of two.
enum HadamardKernel {
  enum Task: Int, CaseIterable {
    /// Encodes one token.
    case token
    /// Encodes a run of tokens.
    case sequence
    /// Decodes a run of tokens.
    case decode
  }

  /// Head sizes with kernels of their own.
  static let headDims: [UInt32] = [64, 80, 96, 112, 128, 192, 256, 512]
  /// The powers of two that any other head size is one of.
  static let otherHeadDims: ClosedRange<UInt32> = 4...4096

  /// The entry points of a task, by packing and then head size, the kernel for any last.
  static func names(_ task: Task) -> [String] {
    HadamardFormat.Packing.allCases.flatMap { packing in
      headDims.map { "\(prefix(task))_\(sizedName(packing))_d\($0)" } + [prefix(task) + anySizeSuffix(packing)]
    }
  }

  private static func prefix(_ task: Task) -> String {
    switch task {
    case .token: "hadamard_quantize_kv"
    case .sequence: "hadamard_quantize_kv_seq"
    case .decode: "hadamard_dequantize_kv"
    }
  }

  private static func sizedName(_ packing: HadamardFormat.Packing) -> String {
    switch packing {
    case .nibble: "fast"
    case .byte: "hb"
    case .dense: "dense"
    }
  }

  private static func anySizeSuffix(_ packing: HadamardFormat.Packing) -> String {
    packing == .nibble ? "" : "_" + sizedName(packing)
  }

  /// The index in `BuiltInKernel.all` of the kernel for a task and a cache.
  static func index(_ task: Task, _ packing: HadamardFormat.Packing, _ headDim: UInt32) -> Int {
    let packings = HadamardFormat.Packing.allCases.count
    let family = task.rawValue * packings + Int(packing.rawValue) - 1
    return first + family * (headDims.count + 1) + (headDims.firstIndex(of: headDim) ?? headDims.count)
  }

  private static let first = CopyKernel.table.count + FlashAttnKernel.names.count + MaskKernel.names.count
}

extension HadamardKernel {
  /// How the threads of a dispatch share the head vectors.
  enum Threads {
    /// So many consecutive threads each, in threadgroups of any size.
    case perVector(UInt32)
    /// A threadgroup each, of at most so many threads, with so many bytes of memory.
    case threadgroup(atMost: UInt32, memory: Int)
  }

  /// As the shaders' headers state it.
  static func threads(_ task: Task, _ headDim: UInt32) -> Threads {
    guard headDims.contains(headDim) else {
      // Coordinates, and beside them their squares.
      return .threadgroup(atMost: min(headDim, 256), memory: Int(headDim) * (task == .decode ? 4 : 8))
    }
    return .perVector(headDim <= 64 ? 1 : headDim <= 128 ? 2 : headDim <= 256 ? 4 : 8)
  }
}
