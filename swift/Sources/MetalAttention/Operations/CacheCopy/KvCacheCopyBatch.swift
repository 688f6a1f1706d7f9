import CMetalAttention

/// `ma_kv_cache_copy_batch`: one token [batch, nHeads, headDim] to head-major
/// [batch, nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopyBatch {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyBatchArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    let kernel = try CopyKernel.index(.batch, k.source.dtype, k.cache.dtype, isDual: v != nil)
    var params = args.params
    let isRing = try CacheRange.isRing(args.isSliding, "isSliding")
    let nHeads = try CacheRange.heads(params.nHeads, "nHeads", batch: args.batch)
    if nHeads == 0 || params.headDim == 0 { return nil }

    try CacheRange.requireSlot(
      params.seqPos, "seqPos", capacity: params.capacity, "capacity", of: .cacheK, isRing: isRing,
      "isSliding")
    let source = Count(nHeads) * params.headDim
    let cache = source * params.capacity
    try CopyStream.requireRoom(
      in: k, v,
      source: source, "\(heads(args)) x \(arg: "headDim") \(params.headDim)",
      cache: cache, "\(heads(args)) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)")

    // The batch lies in memory like more heads.
    params.nHeads = nHeads
    params.seqPos %= params.capacity
    let lastRow = UInt64(nHeads - 1) * UInt64(params.capacity) + UInt64(params.seqPos)
    let headDim = UInt64(params.headDim)
    let extent = CopyExtent(
      source: source.value, cache: cache.value, read: 0..<source.value,
      written: (UInt64(params.seqPos) * headDim)..<((lastRow + 1) * headDim),
      rowSize: params.headDim, rows: nHeads, planes: 1)
    return try CacheCopy.encode(.kvCacheCopyBatch, kernel: kernel, into: pass, k, v, extent, params)
  }

  private static func heads(_ args: MAKvCacheCopyBatchArgs) -> Sentence {
    CacheRange.headsFormula(args.params.nHeads, "nHeads", batch: args.batch)
  }
}
