import CMetalAttention

/// `ma_kv_cache_copy_seq`: token-major [batch, nSrcTokens, nHeads, headDim] to
/// head-major [batch, nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopySeq {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopySeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    let kernel = try CopyKernel.index(.sequence, k.source.dtype, k.cache.dtype, isDual: v != nil)
    let params = args.params
    let isRing = try CacheRange.isRing(args.isSliding, "isSliding")
    let nHeads = try CacheRange.heads(params.nHeads, "nHeads", batch: args.batch)
    if nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try CacheRange.requireRun(
      of: params.nTokens, "nTokens", from: params.seqPosStart, "seqPosStart", capacity: params.capacity, "capacity",
      of: .cacheK, isRing: isRing, "isSliding")
    try CacheRange.requireSource(
      params.nTokens, "nTokens", from: params.srcTokOffset, "srcTokOffset", of: params.nSrcTokens, "nSrcTokens")
    let token = Count(params.nHeads) * params.headDim
    let source = token * params.nSrcTokens * args.batch
    let cache = HeadMajor(nHeads: nHeads, capacity: params.capacity, rowSize: params.headDim)
    let cacheElements = cache.elements
    try CopyStream.requireRoom(
      in: k, v,
      source: source,
      "\(heads(args)) x \(arg: "nSrcTokens") \(params.nSrcTokens) x \(arg: "headDim") \(params.headDim)",
      cache: cacheElements,
      "\(heads(args)) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let skipped = UInt64(params.nSrcTokens - params.srcTokOffset - params.nTokens)
    let extent = CopyExtent(
      source: source.value, cache: cacheElements.value,
      read: (UInt64(params.srcTokOffset) * token.value)..<(source.value - skipped * token.value),
      written: slots.elements, wrapped: slots.wrapped,
      rowSize: params.headDim, rows: nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopySeq, kernel: kernel, into: pass, k, v, extent, params)
  }

  private static func heads(_ args: MAKvCacheCopySeqArgs) -> Sentence {
    CacheRange.headsFormula(args.params.nHeads, "nHeads", batch: args.batch)
  }
}
