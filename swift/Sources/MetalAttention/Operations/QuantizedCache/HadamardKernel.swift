/// The kernels of the Hadamard-quantized cache: one for each task, packing and
/// head size, and for each task and packing one for any power of two. Those that
/// encode a run have one more, for K and V in packings of their own.
enum HadamardKernel {
  enum Task: Int, CaseIterable {
    /// Encodes one token.
    case token
    /// Encodes a run of tokens.
    case sequence
    /// Decodes a run of tokens.
    case decode
  }

  static let family = KernelFamily(
    sources: [
      ("hadamard_quantize_kv.metal", sized.names(at: Task.token.rawValue)),
      ("hadamard_quantize_kv_seq.metal", sized.names(at: Task.sequence.rawValue) + mixed.names),
      (
        "hadamard_quantize_kv_any.metal",
        anySize.names(at: Task.token.rawValue) + anySize.names(at: Task.sequence.rawValue) + [mixedAnySize]
      ),
      (
        "hadamard_dequantize_kv.metal",
        sized.names(at: Task.decode.rawValue) + anySize.names(at: Task.decode.rawValue)
      ),
    ],
    // `whole_words`: rows begin where whole words can be moved; `turns`, `interleaved`, `turns_halves`; `source_dtype`.
    constants: [2, 3, 4, 5, .number(6, bits: 2)],
    // The packings of K and of V.
    furtherConstants: Dictionary(
      uniqueKeysWithValues: (mixed.names + [mixedAnySize]).map { ($0, [.number(7, bits: 2), .number(8, bits: 2)]) }),
    headDims: headDims,
    filesOfSIMDGroups: ["hadamard_quantize_kv.metal", "hadamard_quantize_kv_seq.metal"])

  /// Head sizes with kernels of their own.
  static let headDims: [UInt32] = [64, 80, 96, 112, 128, 192, 256, 512]
  /// Range of the powers of two that the generic kernels take.
  static let otherHeadDims: ClosedRange<UInt32> = 4...4096

  /// The entry points for one head size, by task, packing and head size.
  private static let sized = KernelTable(Task.allCases.count, Packing.allCases.count, headDims.count) { place in
    let (task, packing) = (Task.allCases[place[0]], Packing.allCases[place[1]])
    return "\(prefix(task))_\(sizedName(packing))_d\(headDims[place[2]])"
  }

  /// The entry points for any head size, by task and packing.
  private static let anySize = KernelTable(Task.allCases.count, Packing.allCases.count) { place in
    let (task, packing) = (Task.allCases[place[0]], Packing.allCases[place[1]])
    return prefix(task) + (packing == .nibble ? "" : "_" + sizedName(packing))
  }

  /// The entry points for K and V in packings of their own, by head size; and the one for any.
  private static let mixed = KernelTable(headDims.count) { mixedAnySize + "_d\(headDims[$0[0]])" }
  private static let mixedAnySize = prefix(.sequence) + "_mixed"

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

  private static let sizedIndices = sized.indices
  private static let anySizeIndices = anySize.indices
  private static let mixedIndices = mixed.indices
  private static let mixedAnySizeIndices = KernelTable(1) { _ in mixedAnySize }.indices

  /// The index in `BuiltInKernel.all` of the kernel for a task and a cache in one packing.
  static func index(_ task: Task, _ packing: Packing, _ headDim: UInt32) throws(StatusError) -> Int {
    let (task, packing) = (task.rawValue, Int(packing.rawValue) - 1)
    let size = headDims.firstIndex(of: headDim)
    return try known(size.map { sizedIndices[task, packing, $0] } ?? anySizeIndices[task, packing], headDim)
  }

  /// That of the kernel for a run of K and V in packings of their own.
  static func mixedIndex(_ headDim: UInt32) throws(StatusError) -> Int {
    let size = headDims.firstIndex(of: headDim)
    return try known(size.map { mixedIndices[$0] } ?? mixedAnySizeIndices[0], headDim)
  }

  private static func known(_ index: Int?, _ headDim: UInt32) throws(StatusError) -> Int {
    guard let index else {
      throw StatusError(StatusCode.unsupported, "no kernel serves \(arg: "headDim") \(headDim) in this packing")
    }
    return index
  }
}

extension HadamardKernel {
  /// How the threads of a dispatch share the head vectors.
  enum Threads {
    /// A number of consecutive threads per head vector; threadgroups are a multiple of it.
    case perVector(UInt32)
    /// One threadgroup per head vector: its maximum of threads, its bytes of threadgroup memory.
    case threadgroup(atMost: UInt32, memory: Int)
  }

  /// As the shaders' headers state it.
  static func threads(_ task: Task, _ headDim: UInt32) -> Threads {
    guard headDims.contains(headDim) else {
      // Coordinates, and beside them their squares.
      return .threadgroup(atMost: min(headDim, 256), memory: Int(headDim) * (task == .decode ? 4 : 8))
    }
    return .perVector(headDim == 512 ? 16 : headDim % 32 == 0 ? 8 : 4)
  }
}
