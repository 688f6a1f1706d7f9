import CMetalAttention

/// `ma_kv_cache_append`: tokens [batch, nTokens, nHeads, headDim] to head-major caches or pages, K turned by its
/// rotary positions or not, K alone or K and V.
enum KvCacheAppend {
  private static let threadsPerThreadgroup: UInt32 = 256

  static func encode(_ args: MAKvCacheAppendArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = args.params
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    let kernel = try AppendKernel.index(k)
    let positions = try TokenPositions(
      args.positions, perBatch: params.positionsPerBatch, batch: params.batch, nTokens: params.nTokens, in: pass)
    let isRing = try CacheRange.isRing(params.isSliding, "isSliding")
    _ = try CacheRange.heads(params.nHeads, "nHeads", batch: params.batch)
    let rope = try ropeTable(args)
    let rows = try HeadGroups.rows(batch: params.batch, nTokens: params.nTokens)
    let hasPages = Tensor.isPresent(args.blockTable)
    let layout = try AppendLayout(params, k, v, hasPages: hasPages, isFixed: positions == nil, isRing: isRing)
    let pages =
      hasPages
      ? try BlockTable.use(args.blockTable, batch: params.batch, pages: params.capacity / params.pageTokens, in: pass)
      : nil
    if params.nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }
    // By their places among the kernel's arguments.
    let uses: [TensorUse?] =
      layout.uses(of: k) + (v.map { layout.uses(of: $0) } ?? [nil, nil]) + [positions?.use, pages]
    try TensorUse.requireApart(uses.compactMap { $0 })

    let isWide = PairsOfThread.areTwo(
      headDim: params.headDim, rope, k.source, k.cache, and: v.map { ($0.source, $0.cache) })
    let flags = [
      v != nil, positions != nil, hasPages, rope != nil, rope?.isInterleaved ?? false, rope?.hasRest ?? false, isWide,
    ]
    let variant = flags.enumerated().reduce(0) { $0 | ($1.element ? 1 << $1.offset : 0) }
    let slot = PipelineSlot(kernel: kernel, variant: variant)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    for (index, use) in uses.enumerated() {
      use?.bind(in: encoder, at: index)
      use?.note(in: encoder)
    }
    if let rope { encoder.bind(rope.frequencies, at: 6) }
    encoder.bind(params, at: 7)
    let columns = params.headDim / (isWide ? 4 : 2)
    let grid = GridSize(columns, rows, HeadGroups.count(of: params.nHeads, columns: columns, rows: rows))
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.kvCacheAppend, .threads, grid: grid, threads: threads)
    return nil
  }

  /// What turns K; nil where it stays as it is.
  private static func ropeTable(_ args: MAKvCacheAppendArgs) throws(StatusError) -> RopeTable? {
    let params = args.params
    if params.rotaryDim == 0 {
      try require(
        params.headDim % 2 == 0, StatusCode.invalidArgument, "\(arg: "headDim") is \(params.headDim); it is even")
      try require(
        args.pairing == 0 && args.invFreq == nil && args.invFreqCount == 0 && params.ropeOffset == 0,
        StatusCode.invalidArgument,
        "\(arg: "rotaryDim") is 0: K does not turn; \(arg: "pairing"), \(arg: "invFreq") and \(arg: "ropeOffset") are 0 then"
      )
      return nil
    }
    let table = try RopeTable(
      rotaryDim: params.rotaryDim, headDim: params.headDim, attentionScale: params.attentionScale,
      pairing: args.pairing, invFreq: args.invFreq, invFreqCount: args.invFreqCount)
    let most = RopeTable.maxPosition
    let (offset, first, count) = (Int64(params.ropeOffset), Int64(params.start), Int64(params.nTokens))
    try require(
      abs(offset) <= most, StatusCode.overflow,
      "\(arg: "ropeOffset") is \(params.ropeOffset); a position is within \(most) of 0")
    try require(
      Tensor.isPresent(args.positions) || (first + offset >= -most && first + offset + count - 1 <= most),
      StatusCode.overflow,
      "\(arg: "start") \(params.start) + \(arg: "ropeOffset") \(params.ropeOffset) + \(arg: "nTokens") \(params.nTokens): a position that turns is within \(most) of 0"
    )
    return table
  }
}
