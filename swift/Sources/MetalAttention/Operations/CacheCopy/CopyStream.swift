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
    try stream.source.requireDType(of: first.source)
    try stream.cache.requireDType(of: first.cache)
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

extension Tensor {
  /// Checks that V's tensor has the element type of K's.
  @inline(__always)
  fileprivate func requireDType(of k: Tensor) throws(StatusError) {
    try require(
      dtype == k.dtype, StatusCode.unsupported,
      "\(name) is \(dtype), \(k.name) is \(k.dtype); one dispatch takes K and V of the same dtypes")
  }
}
