/// A kernel of `kv_cache_append.metal`: one for each pair of dtypes.
enum AppendKernel {
  static let family = KernelFamily(
    sources: [("kv_cache_append.metal", table.names)],
    // `has_v`, `has_positions`, `has_pages`, `turns`, `interleaved`, `has_rest`, `is_wide`.
    constants: [500, 501, 502, 503, 504, 505, 506],
    dtypes: dtypes)

  static let dtypes: [DType] = [.f32, .f16, .bf16]

  /// By the dtype of the source and of the cache.
  private static let table = KernelTable(dtypes.count, dtypes.count) { place in
    let (from, to) = (dtypes[place[0]], dtypes[place[1]])
    return from == to ? "kv_cache_append_\(from)" : "kv_cache_append_\(from)_to_\(to)"
  }

  private static let indices = table.indices

  /// The index in `BuiltInKernel.all` of the kernel for a stream.
  @inline(__always)
  static func index(_ stream: CopyStream) throws(StatusError) -> Int {
    guard let from = dtypes.firstIndex(of: stream.source.dtype) else { throw unsupported(stream.source) }
    guard let to = dtypes.firstIndex(of: stream.cache.dtype), let index = indices[from, to] else {
      throw unsupported(stream.cache)
    }
    return index
  }

  @inline(never)
  private static func unsupported(_ tensor: Tensor) -> StatusError {
    StatusError(StatusCode.unsupported, "\(tensor.name) is \(tensor.dtype); it is \(family.dtypeList)")
  }
}
