import CMetalAttention

/// `ma_build_mask`: writes a causal or sliding-window mask [qL, kL].
enum BuildMask {
  /// Elements that a thread writes, those of a SIMD group side by side.
  private static let elementsPerThread: UInt32 = 8
  /// Bools that a thread stores at once, where rows are whole runs of them.
  private static let boolsPerThread: UInt32 = 16
  private static let threadsPerThreadgroup: UInt32 = 1024

  static func encode(_ args: MABuildMaskArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = args.params
    let mask = try Tensor(args.mask, .mask, in: pass)
    let kernel = try MaskKernel.index(params.window > 0 ? .slidingWindow : .causal, mask.dtype)
    try require(params.qL > 0, StatusCode.invalidArgument, "\(arg: "qL") is \(params.qL); it is at least 1")
    try require(params.kL > 0, StatusCode.invalidArgument, "\(arg: "kL") is \(params.kL); it is at least 1")
    try require(
      params.window >= 0, StatusCode.invalidArgument,
      "\(arg: "window") is \(params.window); it is at least 1, or 0 for none")
    try require(
      params.qL_off >= 0, StatusCode.invalidArgument, "\(arg: "qL_off") is \(params.qL_off); it is at least 0")
    try require(
      Int64(params.qL_off) + Int64(params.qL) <= Int64(Int32.max), StatusCode.overflow,
      "\(arg: "qL_off") \(params.qL_off) + \(arg: "qL") \(params.qL) exceeds \(Int32.max)")
    let elements = Count(UInt32(bitPattern: params.qL)) * UInt32(bitPattern: params.kL)
    try mask.requireRoom(for: elements, "\(arg: "qL") \(params.qL) x \(arg: "kL") \(params.kL)")

    let keys = UInt32(bitPattern: params.kL)
    let areRuns = mask.dtype == .bool && keys % boolsPerThread == 0 && mask.offset % UInt64(boolsPerThread) == 0
    let slot = PipelineSlot(kernel: kernel, variant: areRuns ? 1 : 0)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    encoder.bind(mask.buffer, offset: mask.offset, at: 0)
    encoder.note(mask.access(0..<elements.value, isWrite: true))
    encoder.bind(params, at: 1)
    let lanes = Device.simdWidth
    let columns = areRuns ? keys / boolsPerThread : ((keys - 1) / (lanes * elementsPerThread) + 1) * lanes
    let grid = GridSize(columns, UInt32(bitPattern: params.qL), 1)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.buildMask, .threads, grid: grid, threads: threads)
    return nil
  }
}
