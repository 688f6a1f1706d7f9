import CMetalAttention

/// `ma_apply_rope`: turns pairs of coordinates of q, or of q and k, by angles
/// that grow with the position of a token.
enum ApplyRope {
  /// Positions up to here are exact as f32.
  private static let maxPosition: Int64 = 1 << 24
  private static let threadsPerThreadgroup: UInt32 = 256

  static func encode(_ args: MAApplyRopeArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = args.params
    let (q, k) = try streams(args, in: pass)
    let positions = Tensor.isPresent(args.positions) ? try Tensor(args.positions, .positions, in: pass) : nil
    let kernel = try RopeKernel.index(q.input, q.output)
    try requireShape(params)
    guard let pairing = Pairing(rawValue: args.pairing) else {
      throw StatusError(
        StatusCode.invalidArgument, "\(arg: "pairing") is \(args.pairing); it is 1 (half) or 2 (interleaved)")
    }
    let frequencies = try frequencies(args)
    let rows = try rows(params)
    let positionsRead = try positionsRead(params, positions)
    try requireApart(q, k, positionsRead)
    if q.written.start == q.written.end && k.map({ $0.written.start == $0.written.end }) ?? true { return nil }

    let variant = (pairing == .interleaved ? 1 : 0) | (k != nil ? 2 : 0) | (positions != nil ? 4 : 0)
    let slot = PipelineSlot(kernel: kernel, variant: variant)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    q.bind(at: 0, 1, in: encoder)
    k?.bind(at: 2, 3, in: encoder)
    if let positions, let positionsRead {
      encoder.bind(positions.buffer, offset: positions.offset, at: 4)
      encoder.note(positionsRead)
    }
    encoder.bind(frequencies, at: 5)
    encoder.bind(params, at: 6)
    let headGroups = (params.nHeads + params.nKvHeads - 1) / RopeKernel.headsPerThread + 1
    let grid = GridSize(params.headDim / 2, rows, headGroups)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.applyRope, .threads, grid: grid, threads: threads)
    return nil
  }

  /// The streams of q and, where it is given, of k, which has the dtypes of q.
  private static func streams(_ args: MAApplyRopeArgs, in pass: Pass) throws(StatusError) -> (RopeStream, RopeStream?) {
    let params = args.params
    func extent(_ heads: UInt32, _ name: Argument) -> RopeExtent {
      RopeExtent(
        batch: params.batch, nTokens: params.nTokens, heads: heads, headsName: name, headDim: params.headDim)
    }
    let q = try RopeStream(args.q, .q, to: args.outQ, .outQ, extent(params.nHeads, "nHeads"), in: pass)
    if !Tensor.isPresent(args.k) && !Tensor.isPresent(args.outK) {
      try require(
        params.nKvHeads == 0, StatusCode.invalidArgument,
        "\(arg: "nKvHeads") is \(params.nKvHeads), but \(TensorName.k) is absent; it is 0 then")
      return (q, nil)
    }
    let k = try RopeStream(args.k, .k, to: args.outK, .outK, extent(params.nKvHeads, "nKvHeads"), in: pass)
    try require(
      k.input.dtype == q.input.dtype && k.output.dtype == q.output.dtype, StatusCode.unsupported,
      "\(k.input.name) goes from \(k.input.dtype) to \(k.output.dtype), \(q.input.name) from \(q.input.dtype) to \(q.output.dtype); one dispatch needs the same dtypes for both"
    )
    return (q, k)
  }

  private static func requireShape(_ params: RopeParams) throws(StatusError) {
    try require(
      params.headDim % 2 == 0, StatusCode.invalidArgument, "\(arg: "headDim") is \(params.headDim); it is even")
    try require(
      params.rotaryDim % 2 == 0 && params.rotaryDim <= params.headDim, StatusCode.invalidArgument,
      "\(arg: "rotaryDim") is \(params.rotaryDim); it is even and at most \(arg: "headDim") \(params.headDim)")
    try require(
      UInt64(params.nHeads) + UInt64(params.nKvHeads) <= UInt64(Int32.max), StatusCode.overflow,
      "\(arg: "nHeads") \(params.nHeads) + \(arg: "nKvHeads") \(params.nKvHeads) exceeds \(Int32.max)")
    try require(
      params.sequenceMajor <= 1, StatusCode.invalidArgument,
      "\(arg: "sequenceMajor") is \(params.sequenceMajor); it is 0 or 1")
    try require(
      params.attentionScale.isFinite && params.attentionScale > 0, StatusCode.invalidArgument,
      "\(arg: "attentionScale") is \(params.attentionScale); it is finite and above 0, usually 1")
  }

  /// The table of frequencies, which the pass copies.
  private static func frequencies(_ args: MAApplyRopeArgs) throws(StatusError) -> UnsafeRawBufferPointer {
    let rotaryDim = args.params.rotaryDim
    let maxDim = UInt32(KernelBinding.maxBytes) / UInt32(MemoryLayout<Float>.size) * 2
    try require(
      rotaryDim > 0 && rotaryDim <= maxDim, StatusCode.unsupported,
      "\(arg: "rotaryDim") is \(rotaryDim); it is 2 to \(maxDim)")
    try require(
      args.invFreqCount == UInt64(rotaryDim / 2), StatusCode.invalidArgument,
      "\(arg: "invFreq") has \(args.invFreqCount) elements; \(arg: "rotaryDim") \(rotaryDim) has \(rotaryDim / 2) pairs"
    )
    guard let address = args.invFreq else {
      throw StatusError(StatusCode.invalidArgument, "\(arg: "invFreq") is NULL")
    }
    return UnsafeRawBufferPointer(start: address, count: Int(rotaryDim / 2) * MemoryLayout<Float>.size)
  }

  /// Tokens of all batches, which the kernel counts in 32 bits.
  private static func rows(_ params: RopeParams) throws(StatusError) -> UInt32 {
    let (rows, overflow) = params.batch.multipliedReportingOverflow(by: params.nTokens)
    try require(
      !overflow, StatusCode.overflow,
      "\(arg: "batch") \(params.batch) x \(arg: "nTokens") \(params.nTokens) exceeds \(UInt32.max)")
    return rows
  }

  /// The positions that the kernel reads; nil where it counts from `start` on.
  private static func positionsRead(_ params: RopeParams, _ positions: Tensor?) throws(StatusError) -> Access? {
    guard let positions else {
      try require(
        params.positionsPerBatch == 0, StatusCode.invalidArgument,
        "\(arg: "positionsPerBatch") is \(params.positionsPerBatch), but \(TensorName.positions) is absent; it is 0 then"
      )
      try require(
        Int64(params.start) >= -maxPosition && Int64(params.start) + Int64(params.nTokens) - 1 <= maxPosition,
        StatusCode.overflow,
        "\(arg: "start") \(params.start) + \(arg: "nTokens") \(params.nTokens): a position is within \(maxPosition) of 0"
      )
      return nil
    }
    try positions.requireDType(.i32)
    try require(
      params.positionsPerBatch <= 1, StatusCode.invalidArgument,
      "\(arg: "positionsPerBatch") is \(params.positionsPerBatch); it is 0 or 1")
    let elements = Count(params.positionsPerBatch == 1 ? params.batch : 1) * params.nTokens
    try positions.requireRoom(
      for: elements,
      params.positionsPerBatch == 1
        ? "\(arg: "batch") \(params.batch) x \(arg: "nTokens") \(params.nTokens)"
        : "\(arg: "nTokens") \(params.nTokens)")
    return positions.access(0..<elements.value, isWrite: false)
  }

  /// An output may be its own input, and overlaps nothing else.
  private static func requireApart(_ q: RopeStream, _ k: RopeStream?, _ positions: Access?) throws(StatusError) {
    try q.requireInPlaceOrApart()
    if let positions { try q.written.requireApart(q.output.name, from: positions, .positions) }
    guard let k else { return }
    try k.requireInPlaceOrApart()
    if let positions { try k.written.requireApart(k.output.name, from: positions, .positions) }
    try q.written.requireApart(q.output.name, from: k.read, k.input.name)
    try q.written.requireApart(q.output.name, from: k.written, k.output.name)
    try k.written.requireApart(k.output.name, from: q.read, q.input.name)
  }
}
