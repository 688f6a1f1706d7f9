import CMetalAttention

/// `ma_kv_cache_copy`: rows [nNew, rowSize] to cache [cacheCap, rowSize].
enum KvCacheCopy {
  @inline(__always)
  static func encode(_ args: MAKvCacheCopyArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let stream = try CopyStream(args.src, .src, to: args.cache, .cache, in: pass)
    let kernel = try CopyKernel.index(.rows, stream, isDual: false)
    let params = args.params
    let isRing = try CacheRange.isRing(params.isSliding, "isSliding")
    if params.nNew == 0 || params.rowSize == 0 { return nil }

    try CacheRange.requireRun(
      of: params.nNew, "nNew", from: params.writePos, "writePos", capacity: params.cacheCap, "cacheCap", of: .cache,
      isRing: isRing, "isSliding")
    let source = Count(params.nNew) * params.rowSize
    let cache = HeadMajor(nHeads: 1, capacity: params.cacheCap, rowSize: params.rowSize)
    let cacheElements = cache.elements
    try CopyStream.requireRoom(
      in: stream,
      source: source, "\(arg: "nNew") \(params.nNew) x \(arg: "rowSize") \(params.rowSize)",
      cache: cacheElements, "\(arg: "cacheCap") \(params.cacheCap) x \(arg: "rowSize") \(params.rowSize)")

    let extent = CopyExtent(
      source: source.value, cache: cacheElements.value, read: 0..<source.value,
      written: cache.slots(params.nNew, from: params.writePos), rowSize: params.rowSize, rows: params.nNew, planes: 1)
    return try CacheCopy.encode(.kvCacheCopy, kernel: kernel, into: pass, stream, nil, extent, params)
  }
}
