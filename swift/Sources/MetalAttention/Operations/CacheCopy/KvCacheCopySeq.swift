import CMetalAttention

/// `ma_kv_cache_copy_seq`: token-major [batch, nSrcTokens, nHeads, headDim] to
/// head-major [batch, nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopySeq {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopySeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = args.params
    let copy = try HeadMajorCopy(args, .sequence, nHeads: params.nHeads, in: pass)
    if copy.nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try copy.requireRun(of: params.nTokens, from: params.seqPosStart, capacity: params.capacity)
    try CacheRange.requireSource(
      params.nTokens, "nTokens", from: params.srcTokOffset, "srcTokOffset", of: params.nSrcTokens, "nSrcTokens")
    let token = Count(params.nHeads) * params.headDim
    let source = token * params.nSrcTokens * args.batch
    let cache = HeadMajor(nHeads: copy.nHeads, capacity: params.capacity, rowSize: params.headDim)
    let cacheElements = cache.elements
    try CopyStream.requireRoom(
      in: copy.k, copy.v,
      source: source,
      "\(copy.formula) x \(arg: "nSrcTokens") \(params.nSrcTokens) x \(arg: "headDim") \(params.headDim)",
      cache: cacheElements,
      "\(copy.formula) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let skipped = UInt64(params.nSrcTokens - params.srcTokOffset - params.nTokens)
    let read = (UInt64(params.srcTokOffset) * token.value)..<(source.value - skipped * token.value)
    let extent = CopyExtent(
      source: source.value, cache: cacheElements.value, read: read, written: slots, rowSize: params.headDim,
      rows: copy.nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopySeq, kernel: copy.kernel, into: pass, copy.k, copy.v, extent, params)
  }
}
