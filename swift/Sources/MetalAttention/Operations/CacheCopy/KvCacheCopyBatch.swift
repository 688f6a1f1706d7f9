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
      params.seqPos, "seqPos", capacity: params.capacity, "capacity", isRing: copy.isRing, "isSliding")
    let source = Count(copy.nHeads) * params.headDim
    let cache = source * params.capacity
    try CopyStream.requireRoom(
      in: copy.k, copy.v,
      source: source, "\(copy.formula) x \(arg: "headDim") \(params.headDim)",
      cache: cache,
      "\(copy.formula) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    params.nHeads = copy.nHeads
    params.seqPos %= params.capacity
    let lastRow = UInt64(copy.nHeads - 1) * UInt64(params.capacity) + UInt64(params.seqPos)
    let headDim = UInt64(params.headDim)
    let extent = CopyExtent(
      source: source.value, cache: cache.value, read: 0..<source.value,
      written: (UInt64(params.seqPos) * headDim)..<((lastRow + 1) * headDim),
      rowSize: params.headDim, rows: copy.nHeads, planes: 1)
    return try CacheCopy.encode(
      .kvCacheCopyBatch, kernel: copy.kernel, into: pass, copy.k, copy.v, extent, params)
  }
}
