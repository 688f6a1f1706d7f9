import CMetalAttention

/// `ma_kv_cache_copy_seq`: token-major [nSrcTokens, nHeads, headDim] to
/// head-major [nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopySeq {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopySeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    let kernel = try CopyKernel.index(.sequence, k.source.dtype, k.cache.dtype, isDual: v != nil)
    let params = args.params
    if params.nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try CacheRange.requireRun(
      of: params.nTokens, "nTokens", from: params.seqPosStart, "seqPosStart", capacity: params.capacity, "capacity",
      isRing: true)
    let sourceEnd = try CacheRange.sum(params.srcTokOffset, "srcTokOffset", params.nTokens, "nTokens")
    let token = Count(params.nHeads) * params.headDim
    let source = token * sourceEnd
    let cache = HeadMajor(nHeads: params.nHeads, capacity: params.capacity, rowSize: params.headDim)
    let cacheElements = cache.elements
    try CopyStream.requireRoom(
      in: k, v,
      source: source,
      "(srcTokOffset \(params.srcTokOffset) + nTokens \(params.nTokens)) x nHeads \(params.nHeads)"
        + " x headDim \(params.headDim)",
      cache: cacheElements,
      "nHeads \(params.nHeads) x capacity \(params.capacity) x headDim \(params.headDim)")

    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let extent = CopyExtent(
      source: source.value, cache: cacheElements.value,
      read: (UInt64(params.srcTokOffset) * token.value)..<source.value,
      written: slots.elements, wrapped: slots.wrapped,
      rowSize: params.headDim, rows: params.nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopySeq, kernel: kernel, into: pass, k, v, extent, params)
  }
}
