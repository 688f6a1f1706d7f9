/// The kernels of the Hadamard-quantized cache: one for each task, packing and
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

  static let family = KernelFamily(
    name: "quantizedCache",
    sources: [
      ("hadamard_quantize_kv.metal", sizedNames(.token)),
      ("hadamard_quantize_kv_seq.metal", sizedNames(.sequence)),
      ("hadamard_quantize_kv_any.metal", anySizeNames(.token) + anySizeNames(.sequence)),
      ("hadamard_dequantize_kv.metal", sizedNames(.decode) + anySizeNames(.decode)),
    ],
    headDims: headDims,
    operations: [.hadamardQuantizeKv, .hadamardQuantizeKvSeq, .dequantizeKv],
    tensors: [.srcK, .packedK, .normsK, .outK, .srcV, .packedV, .normsV, .outV, .rmsScratch])

  /// Head sizes with kernels of their own.
  static let headDims: [UInt32] = [64, 80, 96, 112, 128, 192, 256, 512]
  /// Range of the powers of two that the generic kernels take.
  static let otherHeadDims: ClosedRange<UInt32> = 4...4096

  /// The entry points of a task for one head size, by packing and then head size.
  private static func sizedNames(_ task: Task) -> [String] {
    Packing.allCases.flatMap { packing in
      headDims.map { "\(prefix(task))_\(sizedName(packing))_d\($0)" }
    }
  }

  /// The entry points of a task for any head size, by packing.
  private static func anySizeNames(_ task: Task) -> [String] {
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

  /// In `BuiltInKernel.all`, by task: those of `sizedNames`, and of `anySizeNames`.
  private static let sizedIndices = Task.allCases.map { KernelFamily.indices(of: sizedNames($0)) }
  private static let anySizeIndices = Task.allCases.map { KernelFamily.indices(of: anySizeNames($0)) }

  /// The index in `BuiltInKernel.all` of the kernel for a task and a cache.
  static func index(_ task: Task, _ packing: Packing, _ headDim: UInt32) -> Int {
    let packing = Int(packing.rawValue) - 1
    guard let size = headDims.firstIndex(of: headDim) else { return Int(anySizeIndices[task.rawValue][packing]) }
    return Int(sizedIndices[task.rawValue][packing * headDims.count + size])
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
    // A SIMD group that shuffles values between lanes, or independent lanes.
    if task == .token { return .perVector(32) }
    return .perVector(headDim <= 64 ? 1 : headDim <= 128 ? 2 : headDim <= 256 ? 4 : 8)
  }
}
