import CMetalAttention

/// `ma_kv_cache_copy_batch`: one token [batch, nHeads, headDim] to head-major
/// [batch, nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopyBatch {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyBatchArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let copy = try HeadMajorCopy(args, .batch, nHeads: params.nHeads, in: pass)
    if copy.nHeads == 0 || params.headDim == 0 { return nil }

    try CacheRange.requireSlot(
      params.seqPos, "seqPos", capacity: params.capacity, "capacity", of: copy.k.cache.name, isRing: copy.isRing,
      "isSliding")
    let source = Count(copy.nHeads) * params.headDim
    let cache = HeadMajor(nHeads: copy.nHeads, capacity: params.capacity, rowSize: params.headDim)
    let cacheElements = cache.elements
    try CopyStream.requireRoom(
      in: copy.k, copy.v,
      source: source, "\(copy.formula) x \(arg: "headDim") \(params.headDim)",
      cache: cacheElements,
      "\(copy.formula) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    params.nHeads = copy.nHeads
    params.seqPos %= params.capacity
    let extent = CopyExtent(
      source: source.value, cache: cacheElements.value, read: 0..<source.value,
      written: cache.slots(1, from: params.seqPos), rowSize: params.headDim, rows: copy.nHeads, planes: 1)
    return try CacheCopy.encode(
      .kvCacheCopyBatch, kernel: copy.kernel, into: pass, copy.k, copy.v, extent, params)
  }
}
