/// Encodes a dispatch of either direction once its parameters are checked: the
/// cache's tensors, kernel, arguments and grid.
struct HadamardDispatch {
  /// Target number of threads per threadgroup where head vectors share one; more wait longer for one another.
  private static let threadsPerThreadgroup: UInt32 = 64

  let operation: Operation
  let task: HadamardKernel.Task
  let cache: HadamardCache
  let k: HadamardStream
  let v: HadamardStream?
  /// Elements of the source or the result that the parameters describe, and
  /// those that are touched; checked against the tensors.
  let values: (elements: UInt64, touched: Range<UInt64>)
  /// Position of the first token in the cache, nil where only the device knows them, and how many there are.
  let position: UInt32?
  let count: UInt32
  /// Batches that the grid counts apart from the heads: sources of more tokens
  /// than are read have gaps between them. Else the batch folds into the heads.
  var batch: UInt32 = 1
  /// What an encoding of one token writes besides.
  var probe: TensorUse?
  /// Where an encoding of a run has its positions and its pages.
  var places: (positions: TensorUse?, table: TensorUse?) = (nil, nil)
  /// What turns K before a run of it is encoded.
  var rope: RopeTable?

  /// - Returns: the slot of a pipeline to compile first, or nil when encoded.
  func encode<Params: BitwiseCopyable>(_ params: Params, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    try cache.requireRoom(in: k)
    if let v { try cache.requireRoom(in: v) }
    let usesOfK = uses(of: k)
    let usesOfV = v.map(uses)
    let all = usesOfK + (usesOfV ?? []) + [probe, places.positions, places.table].compactMap { $0 }
    try TensorUse.requireApart(all)
    try requireThreads()
    try require(
      rope == nil || HadamardKernel.headDims.contains(cache.headDim), StatusCode.unsupported,
      "\(arg: "rotaryDim"): K turns on its way into codes at \(arg: "head_dim") \(HadamardKernel.family.headDimList), not \(cache.headDim); turn it before"
    )

    let slot = try slot
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let (form, grid, threads, memory) = geometry(most: pipeline.maxTotalThreadsPerThreadgroup)

    let encoder = pass.use(pipeline)
    for (index, use) in usesOfK.enumerated() { use.bind(in: encoder, at: index) }
    encoder.bind(params, at: 3)
    // A kernel's buffers are bound whether it uses them or not.
    let hasProbe = task == .token && k.format.packing == .nibble
    if hasProbe { (probe ?? usesOfK[2]).bind(in: encoder, at: 4) }
    for (index, use) in (usesOfV ?? usesOfK).enumerated() {
      use.bind(in: encoder, at: (task == .token ? 5 : 4) + index)
    }
    if task == .sequence {
      (places.positions ?? usesOfK[2]).bind(in: encoder, at: 7)
      (places.table ?? usesOfK[2]).bind(in: encoder, at: 8)
    }
    if let rope { encoder.bind(rope.frequencies, at: 9) }
    if memory > 0 { encoder.setThreadgroupMemory(length: memory, at: 0) }
    for use in all { use.note(in: encoder) }
    encoder.dispatch(operation, form, grid: grid, threads: threads)
    return nil
  }

  /// Heads of a token that a thread has: several where they share the angles by which they turn.
  var headsOfThread: UInt32 {
    guard rope != nil, case .perVector(let lanes) = HadamardKernel.threads(task, cache.headDim) else { return 1 }
    let heads = cache.heads / batch
    let groups = HeadGroups.count(of: heads, columns: lanes, rows: UInt32(clamping: UInt64(count) * UInt64(batch)))
    return (heads - 1) / groups + 1
  }

  private var slot: PipelineSlot {
    get throws(StatusError) {
      let packing = k.format.packing
      guard let other = v?.format.packing, other != packing else {
        return try PipelineSlot(kernel: HadamardKernel.index(task, packing, cache.headDim), variant: variant)
      }
      return try PipelineSlot(
        kernel: HadamardKernel.mixedIndex(cache.headDim),
        variant: variant | Int(packing.rawValue) << 6 | Int(other.rawValue) << 8)
    }
  }

  /// The values of the constants that all kernels have.
  private var variant: Int {
    let turnsHalves = rope.map { !$0.isInterleaved && !$0.hasRest } ?? false
    let flags = [isAligned, rope != nil, rope?.isInterleaved ?? false, turnsHalves]
    // What decodes has no source.
    let dtype = task == .decode ? 0 : Int(k.values.dtype.rawValue)
    return flags.enumerated().reduce(dtype << 4) { $0 | ($1.element ? 1 << $1.offset : 0) }
  }

  /// Whether all tensors begin where whole words can be moved: 4 elements of vectors, 4 bytes of codes.
  private var isAligned: Bool {
    func isAligned(_ stream: HadamardStream) -> Bool {
      stream.values.offset % UInt64(4 * stream.values.dtype.size) == 0 && stream.packed.offset % 4 == 0
    }
    return isAligned(k) && v.map(isAligned) ?? true
  }

  /// A stream's tensors in the order of the kernel's arguments.
  private func uses(of stream: HadamardStream) -> [TensorUse] {
    let isDecode = task == .decode
    let vectors = TensorUse(
      tensor: stream.values, isWrite: isDecode, elements: values.elements,
      touched: HeadMajor.Slots(elements: values.touched))
    let stored = [(stream.packed, cache.packed(stream.format)), (stream.norms, cache.norms)].map { tensor, array in
      let elements = array.elements.value
      let touched = position.map { array.slots(count, from: $0) } ?? HeadMajor.Slots(elements: 0..<elements)
      return TensorUse(tensor: tensor, isWrite: !isDecode, elements: elements, touched: touched)
    }
    return isDecode ? stored + [vectors] : [vectors] + stored
  }

  /// Head vectors of a stream along x of the grid, or groups of those that share a thread.
  private var vectors: Count { Count((cache.heads / batch - 1) / headsOfThread + 1) * count }

  /// Kernels see the positions of threads in 32 bits.
  private func requireThreads() throws(StatusError) {
    let threads =
      switch HadamardKernel.threads(task, cache.headDim) {
      case .perVector(let lanes): vectors * lanes + (Device.simdWidth - 1)
      case .threadgroup(let limit, _): vectors * limit
      }
    try require(
      !threads.overflowed && threads.value <= UInt64(UInt32.max), StatusCode.overflow,
      "\(arg: "num_kv_heads") \(cache.heads) x \(count) tokens take more than \(UInt32.max) threads; split the tokens"
    )
  }

  private typealias Geometry = (form: DispatchForm, grid: GridSize, threads: GridSize, memory: Int)

  /// The grid and its threadgroups; the number of threads has been checked.
  /// - Parameter most: threads that the pipeline allows a threadgroup.
  private func geometry(most: UInt32) -> Geometry {
    let vectors = UInt32(truncatingIfNeeded: vectors.value)
    let streams: UInt32 = v == nil ? 1 : 2
    switch HadamardKernel.threads(task, cache.headDim) {
    case .perVector(let lanes):
      // Whole SIMD groups; lanes past the last vector leave at once.
      let width = (vectors * lanes + Device.simdWidth - 1) / Device.simdWidth * Device.simdWidth
      let threads = min(width, Self.threadsPerThreadgroup, most)
      return (.threads, GridSize(width, streams, batch), GridSize(threads, 1, 1), 0)
    case .threadgroup(let limit, let memory):
      return (.threadgroups, GridSize(vectors, streams, batch), GridSize(min(limit, most), 1, 1), memory)
    }
  }
}
