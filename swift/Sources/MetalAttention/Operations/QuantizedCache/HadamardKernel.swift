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

  /// Every entry point: those for one head size, then those for any.
  static let names: [String] = Task.allCases.flatMap(sizedNames) + Task.allCases.flatMap(anySizeNames)

  /// The entry points of a task for one head size, by packing and then head size.
  static func sizedNames(_ task: Task) -> [String] {
    Packing.allCases.flatMap { packing in
      headDims.map { "\(prefix(task))_\(sizedName(packing))_d\($0)" }
    }
  }

  /// The entry points of a task for any head size, by packing.
  static func anySizeNames(_ task: Task) -> [String] {
    Packing.allCases.map { prefix(task) + ($0 == .nibble ? "" : "_" + sizedName($0)) }
  }

  private static func prefix(_ task: Task) -> String {
    switch task {
    case .token: "hadamard_quantize_kv"
    case .sequence: "hadamard_quantize_kv_seq"
    case .decode: "hadamard_dequantize_kv"
    }
  }

  private static func sizedName(_ packing: Packing) -> String {
    switch packing {
    case .nibble: "fast"
    case .byte: "hb"
    case .dense: "dense"
    }
  }

  /// The index in `BuiltInKernel.all` of the kernel for a task and a cache.
  static func index(_ task: Task, _ packing: Packing, _ headDim: UInt32) -> Int {
    let packings = Packing.allCases.count
    let family = task.rawValue * packings + Int(packing.rawValue) - 1
    let sizedCount = Task.allCases.count * packings * headDims.count
    return first + (headDims.firstIndex(of: headDim).map { family * headDims.count + $0 } ?? sizedCount + family)
  }

  private static let first = CopyKernel.table.count + FlashAttnKernel.names.count + MaskKernel.names.count
}

extension HadamardKernel {
  /// How the threads of a dispatch share the head vectors.
  enum Threads {
    /// So many consecutive threads each, in threadgroups of a multiple of them.
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
    // A SIMD group, whose lanes exchange values; or lanes that exchange nothing.
    if task == .token { return .perVector(32) }
    return .perVector(headDim <= 64 ? 1 : headDim <= 128 ? 2 : headDim <= 256 ? 4 : 8)
  }
}
