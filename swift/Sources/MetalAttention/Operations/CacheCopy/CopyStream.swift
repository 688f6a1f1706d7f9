import CMetalAttention

/// A source and the cache it is copied to: K, V, or the only one.
struct CopyStream {
  let source: Tensor
  let cache: Tensor

  @inline(__always)
  init(
    _ source: MATensor, _ sourceName: TensorName, to cache: MATensor, _ cacheName: TensorName, in pass: Pass
  ) throws(StatusError) {
    self.source = try Tensor(source, sourceName, in: pass)
    self.cache = try Tensor(cache, cacheName, in: pass)
  }

  /// The second stream of a call that takes K alone or K and V; nil when both
  /// of its tensors are absent.
  @inline(__always)
  static func optional(
    _ source: MATensor, _ sourceName: TensorName, to cache: MATensor, _ cacheName: TensorName, in pass: Pass,
    like first: CopyStream
  ) throws(StatusError) -> CopyStream? {
    let hasSource = Tensor.isPresent(source)
    let hasCache = Tensor.isPresent(cache)
    if !hasSource && !hasCache { return nil }
    try require(
      hasSource && hasCache, StatusCode.invalidArgument,
      "\(hasSource ? cacheName : sourceName) is absent; give both \(sourceName) and \(cacheName), or neither")
    let stream = try CopyStream(source, sourceName, to: cache, cacheName, in: pass)
    try require(
      stream.source.dtype == first.source.dtype && stream.cache.dtype == first.cache.dtype, StatusCode.unsupported,
      "V is copied from \(stream.source.dtype) to \(stream.cache.dtype), K from \(first.source.dtype) to "
        + "\(first.cache.dtype); one dispatch needs the same dtypes for both")
    return stream
  }

  /// Checks that the tensors of one stream or of both hold what they must.
  @inline(__always)
  static func requireRoom(
    in k: CopyStream, _ v: CopyStream? = nil,
    source sourceElements: Count, _ sourceFormula: @autoclosure () -> Sentence,
    cache cacheElements: Count, _ cacheFormula: @autoclosure () -> Sentence
  ) throws(StatusError) {
    try k.source.requireRoom(for: sourceElements, sourceFormula())
    try k.cache.requireRoom(for: cacheElements, cacheFormula())
    try v?.source.requireRoom(for: sourceElements, sourceFormula())
    try v?.cache.requireRoom(for: cacheElements, cacheFormula())
  }
}
