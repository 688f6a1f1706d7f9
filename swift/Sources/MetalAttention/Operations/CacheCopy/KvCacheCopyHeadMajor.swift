import CMetalAttention

/// `ma_kv_cache_copy_head_major`: head-major [nHeads, srcSeqLen, headDim] to
/// head-major [nHeads, capacity, headDim].
enum KvCacheCopyHeadMajor {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyHeadMajorArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let stream = try CopyStream(args.src, .src, to: args.cache, .cache, in: pass)
    let kernel = try CopyKernel.index(.headMajor, stream.source.dtype, stream.cache.dtype, isDual: false)
    let params = args.params
    if params.nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try CacheRange.requireRun(
      of: params.nTokens, "nTokens", from: params.seqPosStart, "seqPosStart", capacity: params.capacity, "capacity",
      isRing: true)
    let sourceEnd = try CacheRange.sum(params.srcTokOffset, "srcTokOffset", params.nTokens, "nTokens")
    try require(
      sourceEnd <= params.srcSeqLen, StatusCode.bufferTooSmall,
      "src: srcTokOffset \(params.srcTokOffset) + nTokens \(params.nTokens) exceeds srcSeqLen \(params.srcSeqLen)")
    let source = HeadMajor(nHeads: params.nHeads, capacity: params.srcSeqLen, rowSize: params.headDim)
    let cache = HeadMajor(nHeads: params.nHeads, capacity: params.capacity, rowSize: params.headDim)
    let (sourceElements, cacheElements) = (source.elements, cache.elements)
    try CopyStream.requireRoom(
      in: stream,
      source: sourceElements,
      "nHeads \(params.nHeads) x srcSeqLen \(params.srcSeqLen) x headDim \(params.headDim)",
      cache: cacheElements, "nHeads \(params.nHeads) x capacity \(params.capacity) x headDim \(params.headDim)")

    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let extent = CopyExtent(
      source: sourceElements.value, cache: cacheElements.value,
      read: source.slots(params.nTokens, from: params.srcTokOffset).elements,
      written: slots.elements, wrapped: slots.wrapped,
      rowSize: params.headDim, rows: params.nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopyHeadMajor, kernel: kernel, into: pass, stream, nil, extent, params)
  }
}
