import CMetalAttention

/// `ma_kv_cache_copy_head_major`: head-major [batch, nHeads, srcSeqLen, headDim]
/// to head-major [batch, nHeads, capacity, headDim].
enum KvCacheCopyHeadMajor {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyHeadMajorArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let stream = try CopyStream(args.src, .src, to: args.cache, .cache, in: pass)
    let kernel = try CopyKernel.index(.headMajor, stream.source.dtype, stream.cache.dtype, isDual: false)
    var params = args.params
    let isRing = try CacheRange.isRing(args.isSliding, "isSliding")
    let nHeads = try CacheRange.heads(params.nHeads, "nHeads", batch: args.batch)
    if nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try CacheRange.requireRun(
      of: params.nTokens, "nTokens", from: params.seqPosStart, "seqPosStart", capacity: params.capacity, "capacity",
      of: .cache, isRing: isRing, "isSliding")
    try CacheRange.requireSource(
      params.nTokens, "nTokens", from: params.srcTokOffset, "srcTokOffset", of: params.srcSeqLen, "srcSeqLen")
    let source = HeadMajor(nHeads: nHeads, capacity: params.srcSeqLen, rowSize: params.headDim)
    let cache = HeadMajor(nHeads: nHeads, capacity: params.capacity, rowSize: params.headDim)
    let (sourceElements, cacheElements) = (source.elements, cache.elements)
    try CopyStream.requireRoom(
      in: stream,
      source: sourceElements,
      "\(heads(args)) x \(arg: "srcSeqLen") \(params.srcSeqLen) x \(arg: "headDim") \(params.headDim)",
      cache: cacheElements,
      "\(heads(args)) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    // The batch lies in memory like more heads.
    params.nHeads = nHeads
    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let extent = CopyExtent(
      source: sourceElements.value, cache: cacheElements.value,
      read: source.slots(params.nTokens, from: params.srcTokOffset).elements,
      written: slots.elements, wrapped: slots.wrapped,
      rowSize: params.headDim, rows: nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopyHeadMajor, kernel: kernel, into: pass, stream, nil, extent, params)
  }

  private static func heads(_ args: MAKvCacheCopyHeadMajorArgs) -> Sentence {
    CacheRange.headsFormula(args.params.nHeads, "nHeads", batch: args.batch)
  }
}
