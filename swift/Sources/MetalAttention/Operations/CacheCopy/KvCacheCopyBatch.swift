import CMetalAttention

/// `ma_kv_cache_copy_batch`: one token [nHeads * headDim] to head-major
/// [nHeads, capacity, headDim], K alone or K and V.
enum KvCacheCopyBatch {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyBatchArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    let kernel = try CopyKernel.index(.batch, k.source.dtype, k.cache.dtype, isDual: v != nil)
    let params = args.params
    if params.nHeads == 0 || params.headDim == 0 { return nil }

    try CacheRange.requireSlot(
      params.seqPos, "seqPos", capacity: params.capacity, "capacity", otherwise: "wrap it for a ring")
    let source = Count(params.nHeads) * params.headDim
    let cache = source * params.capacity
    try CopyStream.requireRoom(
      in: k, v,
      source: source, "nHeads \(params.nHeads) x headDim \(params.headDim)",
      cache: cache, "nHeads \(params.nHeads) x capacity \(params.capacity) x headDim \(params.headDim)")

    let lastRow = UInt64(params.nHeads - 1) * UInt64(params.capacity) + UInt64(params.seqPos)
    let headDim = UInt64(params.headDim)
    let extent = CopyExtent(
      source: source.value, cache: cache.value, read: 0..<source.value,
      written: (UInt64(params.seqPos) * headDim)..<((lastRow + 1) * headDim),
      rowSize: params.headDim, rows: params.nHeads, planes: 1)
    return try CacheCopy.encode(.kvCacheCopyBatch, kernel: kernel, into: pass, k, v, extent, params)
  }
}
