/// A kernel of `kv_cache_copy.metal`.
enum CopyKernel {
  /// How source and cache are laid out; `ShaderTypes.h` states both.
  enum Layout: Int, CaseIterable {
    case rows
    case batch
    case sequence
    case headMajor
  }

  static let family = KernelFamily(
    sources: [("kv_cache_copy.metal", table.names)],
    // `are_vectors`: a thread moves a vector of elements. `wide_index`: 64-bit indices.
    constants: [0, 1],
    dtypes: dtypes)

  static let dtypes: [DType] = [.f32, .f16, .bf16]

  /// By layout, dtype of the source, dtype of the cache, and whether one dispatch moves both K and V.
  static let table = KernelTable(Layout.allCases.count, dtypes.count, dtypes.count, 2) { place in
    name(Layout.allCases[place[0]], dtypes[place[1]], dtypes[place[2]], isDual: place[3] == 1)
  }

  private static let indices = table.indices

  private static func name(_ layout: Layout, _ source: DType, _ cache: DType, isDual: Bool) -> String? {
    let dual = isDual ? "_kv_dual" : ""
    switch layout {
    case .rows:
      guard source == cache, !isDual else { return nil }
      return source == .bf16 ? "kv_cache_copy" : "kv_cache_copy_\(source)"
    case .batch: return pair(source, cache).map { "kv_cache_copy_batch_\($0)\(dual)" }
    case .sequence: return pair(source, cache).map { "kv_cache_copy_seq_\($0)\(dual)" }
    case .headMajor:
      return source == .bf16 && cache == .bf16 && !isDual ? "kv_cache_copy_seq_bf16_to_bf16_head_major" : nil
    }
  }

  /// The name of a pair of dtypes of a token-major source and a head-major cache.
  private static func pair(_ source: DType, _ cache: DType) -> String? {
    switch (source, cache) {
    case (.f32, .f32): "f32"
    case (.bf16, .f32): "bf16"
    case (.f32, _), (.bf16, .bf16), (.f16, .f16): "\(source)_to_\(cache)"
    default: nil
    }
  }

  /// The index in `BuiltInKernel.all` of the kernel for a layout and the dtypes of a stream.
  @inline(__always)
  static func index(_ layout: Layout, _ stream: CopyStream, isDual: Bool) throws(StatusError) -> Int {
    guard let index = indexIfAny(layout, stream, isDual: isDual) else {
      throw unsupported(layout, stream, isDual: isDual)
    }
    return index
  }

  /// The same, or nil: there is none for these dtypes.
  @inline(__always)
  static func indexIfAny(_ layout: Layout, _ stream: CopyStream, isDual: Bool) -> Int? {
    guard
      let source = dtypes.firstIndex(of: stream.source.dtype), let cache = dtypes.firstIndex(of: stream.cache.dtype)
    else { return nil }
    return indices[layout.rawValue, source, cache, isDual ? 1 : 0]
  }

  @inline(never)
  private static func unsupported(_ layout: Layout, _ stream: CopyStream, isDual: Bool) -> StatusError {
    let (source, cache) = (stream.source, stream.cache)
    let place = [layout.rawValue, isDual ? 1 : 0]
    let pairs = table.entries.filter { [$0.place[0], $0.place[3]] == place }
      .map { "\(dtypes[$0.place[1]]) to \(dtypes[$0.place[2]])" }
    return StatusError(
      StatusCode.unsupported,
      "\(source.name) is \(source.dtype), \(cache.name) is \(cache.dtype); no kernel copies \(source.dtype) to "
        + "\(cache.dtype) here; supported\(isDual ? " for K and V together" : ""): \(pairs.joined(separator: ", "))")
  }
}
