import CMetalAttention

/// `ma_kv_cache_copy_head_major`: head-major [batch, nHeads, srcSeqLen, headDim]
/// to head-major [batch, nHeads, capacity, headDim].
enum KvCacheCopyHeadMajor {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyHeadMajorArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let copy = try HeadMajorCopy(
      CopyStream(args.src, .src, to: args.cache, .cache, in: pass), nil, .headMajor, isSliding: args.isSliding,
      nHeads: params.nHeads, batch: args.batch)
    if copy.nHeads == 0 || params.headDim == 0 || params.nTokens == 0 { return nil }

    try copy.requireRun(of: params.nTokens, from: params.seqPosStart, capacity: params.capacity)
    try CacheRange.requireSource(
      params.nTokens, "nTokens", from: params.srcTokOffset, "srcTokOffset", of: params.srcSeqLen, "srcSeqLen")
    let source = HeadMajor(nHeads: copy.nHeads, capacity: params.srcSeqLen, rowSize: params.headDim)
    let cache = HeadMajor(nHeads: copy.nHeads, capacity: params.capacity, rowSize: params.headDim)
    func formula(_ axis: Argument, _ length: UInt32) -> Sentence {
      "\(copy.formula) x \(axis) \(length) x \(arg: "headDim") \(params.headDim)"
    }
    let (sourceElements, cacheElements) = (source.elements, cache.elements)
    try CopyStream.requireRoom(
      in: copy.k, source: sourceElements, formula("srcSeqLen", params.srcSeqLen), cache: cacheElements,
      formula("capacity", params.capacity))

    params.nHeads = copy.nHeads
    let slots = cache.slots(params.nTokens, from: params.seqPosStart)
    let read = source.slots(params.nTokens, from: params.srcTokOffset).elements
    let extent = CopyExtent(
      source: sourceElements.value, cache: cacheElements.value, read: read, written: slots,
      rowSize: params.headDim, rows: copy.nHeads, planes: params.nTokens)
    return try CacheCopy.encode(.kvCacheCopyHeadMajor, kernel: copy.kernel, into: pass, copy.k, nil, extent, params)
  }
}
