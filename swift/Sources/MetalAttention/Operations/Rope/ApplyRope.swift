import CMetalAttention

/// `ma_apply_rope`: turns pairs of coordinates of q, or of q and k, by angles
/// that grow with the position of a token.
enum ApplyRope {
  private static let threadsPerThreadgroup: UInt32 = 256

  static func encode(_ args: MAApplyRopeArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = args.params
    let (q, k) = try streams(args, in: pass)
    let positions = try TokenPositions(
      args.positions, perBatch: params.positionsPerBatch, batch: params.batch, nTokens: params.nTokens, in: pass)
    let kernel = try RopeKernel.index(q.input, q.output)
    try requireShape(params)
    let table = try RopeTable(
      rotaryDim: params.rotaryDim, headDim: params.headDim, attentionScale: params.attentionScale,
      pairing: args.pairing, invFreq: args.invFreq, invFreqCount: args.invFreqCount)
    let rows = try HeadGroups.rows(batch: params.batch, nTokens: params.nTokens)
    if positions == nil { try requirePositions(params) }
    try requireApart(q, k, positions?.read)
    if q.written.start == q.written.end && k.map({ $0.written.start == $0.written.end }) ?? true { return nil }

    let isWide = PairsOfThread.areTwo(
      headDim: params.headDim, table, q.input, q.output, and: k.map { ($0.input, $0.output) })
    let variant =
      (table.isInterleaved ? 1 : 0) | (k != nil ? 2 : 0) | (positions != nil ? 4 : 0) | (table.hasRest ? 8 : 0)
      | (isWide ? 16 : 0)
    let slot = PipelineSlot(kernel: kernel, variant: variant)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    q.bind(at: 0, 1, in: encoder)
    k?.bind(at: 2, 3, in: encoder)
    positions?.use.bind(in: encoder, at: 4)
    positions?.use.note(in: encoder)
    encoder.bind(table.frequencies, at: 5)
    encoder.bind(params, at: 6)
    let columns = params.headDim / (isWide ? 4 : 2)
    let groups = HeadGroups.count(of: params.nHeads + params.nKvHeads, columns: columns, rows: rows)
    let grid = GridSize(columns, rows, groups)
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
    try requireSame(k.input, q.input)
    try requireSame(k.output, q.output)
    return (q, k)
  }

  private static func requireSame(_ k: Tensor, _ q: Tensor) throws(StatusError) {
    try require(
      k.dtype == q.dtype, StatusCode.unsupported,
      "\(k.name) is \(k.dtype), \(q.name) is \(q.dtype); one dispatch needs the same dtypes for q and k")
  }

  private static func requireShape(_ params: RopeParams) throws(StatusError) {
    try require(
      UInt64(params.nHeads) + UInt64(params.nKvHeads) <= UInt64(Int32.max), StatusCode.overflow,
      "\(arg: "nHeads") \(params.nHeads) + \(arg: "nKvHeads") \(params.nKvHeads) exceeds \(Int32.max)")
    try require(
      params.sequenceMajor <= 1, StatusCode.invalidArgument,
      "\(arg: "sequenceMajor") is \(params.sequenceMajor); it is 0 or 1")
  }

  /// Of tokens that follow one another.
  private static func requirePositions(_ params: RopeParams) throws(StatusError) {
    let most = RopeTable.maxPosition
    try require(
      params.nTokens == 0 || Int64(params.start) >= -most && Int64(params.start) + Int64(params.nTokens) - 1 <= most,
      StatusCode.overflow,
      "\(arg: "start") \(params.start) + \(arg: "nTokens") \(params.nTokens): a position is within \(most) of 0")
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
