import CMetalAttention

/// `ma_kv_cache_append`: tokens [batch, nTokens, nHeads, headDim] to head-major caches or pages, K turned by its
/// rotary positions or not, K alone or K and V. What is a plain copy, of dtypes that have one, runs as that: its threads
/// move 16 bytes and work out less than those of `kv_cache_append.metal`.
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
    let rope = try RopeTable.ofWrite(
      rotaryDim: params.rotaryDim, headDim: params.headDim, attentionScale: params.attentionScale,
      offset: params.ropeOffset, pairing: args.pairing, invFreq: args.invFreq, invFreqCount: args.invFreqCount,
      from: positions == nil ? params.start : nil, "start", count: params.nTokens, "nTokens")
    try require(
      params.headDim % 2 == 0, StatusCode.invalidArgument, "\(arg: "headDim") is \(params.headDim); it is even")
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
    if rope == nil, positions == nil, !hasPages,
      let kernel = CopyKernel.indexIfAny(.sequence, k, isDual: v != nil)
    {
      return try CacheCopy.encode(
        .kvCacheAppend, kernel: kernel, into: pass, k, v, layout.extent(params), KvCacheCopySeqParams(params))
    }

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
    let groups = HeadGroups.count(of: params.nHeads, columns: columns, rows: rows)
    let grid = GridSize(columns, rows, v == nil ? groups : 2 * groups)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.kvCacheAppend, .threads, grid: grid, threads: threads)
    return nil
  }
}

extension KvCacheCopySeqParams {
  /// Of an append of K as it is, from a position on.
  fileprivate init(_ params: KvCacheAppendParams) {
    self.init(
      nHeads: params.nHeads, headDim: params.headDim, capacity: params.capacity, seqPosStart: params.start,
      nTokens: params.nTokens, srcTokOffset: 0, nSrcTokens: params.nTokens)
  }
}
