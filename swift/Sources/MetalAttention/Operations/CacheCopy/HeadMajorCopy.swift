import CMetalAttention

/// Arguments of a copy into a head-major cache, of K alone or of K and V.
protocol HeadMajorCopyArgs {
  var srcK: MATensor { get }
  var cacheK: MATensor { get }
  var srcV: MATensor { get }
  var cacheV: MATensor { get }
  var isSliding: UInt32 { get }
  var batch: UInt32 { get }
}

extension MAKvCacheCopyBatchArgs: HeadMajorCopyArgs {}
extension MAKvCacheCopySeqArgs: HeadMajorCopyArgs {}

/// What the copies into head-major caches [batch, nHeads, capacity, headDim]
/// have in common: streams, kernel and form of the cache, checked.
struct HeadMajorCopy {
  let k: CopyStream
  let v: CopyStream?
  /// In `BuiltInKernel.all`.
  let kernel: Int
  let isRing: Bool
  /// Heads of all batches: a batch is laid out as further heads.
  let nHeads: UInt32
  private let batch: UInt32

  @inline(__always)
  init(
    _ args: some HeadMajorCopyArgs, _ layout: CopyKernel.Layout, nHeads: UInt32, in pass: Pass
  ) throws(StatusError) {
    let k = try CopyStream(args.srcK, .srcK, to: args.cacheK, .cacheK, in: pass)
    let v = try CopyStream.optional(args.srcV, .srcV, to: args.cacheV, .cacheV, in: pass, like: k)
    try self.init(k, v, layout, isSliding: args.isSliding, nHeads: nHeads, batch: args.batch)
  }

  @inline(__always)
  init(
    _ k: CopyStream, _ v: CopyStream?, _ layout: CopyKernel.Layout, isSliding: UInt32, nHeads: UInt32, batch: UInt32
  ) throws(StatusError) {
    self.k = k
    self.v = v
    kernel = try CopyKernel.index(layout, k, isDual: v != nil)
    isRing = try CacheRange.isRing(isSliding, "isSliding")
    self.nHeads = try CacheRange.heads(nHeads, "nHeads", batch: batch)
    self.batch = batch
  }

  /// For messages: heads of a batch, and the batch where there is more than one.
  var formula: Sentence { CacheRange.headsFormula(nHeads / batch, "nHeads", batch: batch) }

  /// Checks a run of tokens against the cache.
  @inline(__always)
  func requireRun(of nTokens: UInt32, from seqPosStart: UInt32, capacity: UInt32) throws(StatusError) {
    try CacheRange.requireRun(
      of: nTokens, "nTokens", from: seqPosStart, "seqPosStart", capacity: capacity, "capacity", of: k.cache.name,
      isRing: isRing, "isSliding")
  }
}
