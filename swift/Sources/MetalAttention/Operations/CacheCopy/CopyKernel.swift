/// A kernel of `kv_cache_copy.metal`.
struct CopyKernel {
  /// How source and cache are laid out; `ShaderTypes.h` states both.
  enum Layout: Int, CaseIterable {
    case rows
    case batch
    case sequence
    case headMajor
  }

  let name: String
  let layout: Layout
  let source: DType
  let cache: DType
  /// Whether one dispatch moves both K and V.
  let isDual: Bool

  static let family = KernelFamily(
    name: "cacheCopy",
    sources: [("kv_cache_copy.metal", table.map(\.name))],
    // `four_elements`: a thread moves 4 elements. `wide_index`: 64-bit indices.
    constants: [0, 1],
    dtypes: [.f32, .f16, .bf16],
    operations: [.kvCacheCopy, .kvCacheCopyBatch, .kvCacheCopySeq, .kvCacheCopyHeadMajor],
    tensors: [.src, .cache, .srcK, .cacheK, .srcV, .cacheV])

  static let table: [CopyKernel] =
    single(.rows, .bf16, .bf16, "kv_cache_copy")
    + single(.rows, .f32, .f32, "kv_cache_copy_f32")
    + single(.rows, .f16, .f16, "kv_cache_copy_f16")
    + everyPair(.batch, "kv_cache_copy_batch")
    + everyPair(.sequence, "kv_cache_copy_seq")
    + single(.headMajor, .bf16, .bf16, "kv_cache_copy_seq_bf16_to_bf16_head_major")

  private static func single(_ layout: Layout, _ source: DType, _ cache: DType, _ name: String) -> [CopyKernel] {
    [CopyKernel(name: name, layout: layout, source: source, cache: cache, isDual: false)]
  }

  /// The pairs of dtypes of a token-major source and a head-major cache.
  private static func everyPair(_ layout: Layout, _ name: String) -> [CopyKernel] {
    both(layout, .f32, .f32, name + "_f32")
      + both(layout, .f32, .f16, name + "_f32_to_f16")
      + both(layout, .f32, .bf16, name + "_f32_to_bf16")
      + both(layout, .bf16, .f32, name + "_bf16")
      + both(layout, .bf16, .bf16, name + "_bf16_to_bf16")
      + both(layout, .f16, .f16, name + "_f16_to_f16")
  }

  private static func both(_ layout: Layout, _ source: DType, _ cache: DType, _ name: String) -> [CopyKernel] {
    single(layout, source, cache, name)
      + [CopyKernel(name: name + "_kv_dual", layout: layout, source: source, cache: cache, isDual: true)]
  }
}

extension CopyKernel {
  /// The index in `BuiltInKernel.all` of the kernel for a layout and the dtypes of a stream.
  @inline(__always)
  static func index(_ layout: Layout, _ stream: CopyStream, isDual: Bool) throws(StatusError) -> Int {
    let index = indices[key(layout, stream.source.dtype, stream.cache.dtype, isDual: isDual)]
    if index < 0 { throw unsupported(layout, stream, isDual: isDual) }
    return Int(index)
  }

  /// Indices by `key`; -1 where there is no kernel.
  private static let indices: ContiguousArray<Int32> = {
    var indices = ContiguousArray<Int32>(repeating: -1, count: Layout.allCases.count << 9)
    for (kernel, index) in zip(table, KernelFamily.indices(of: table.map(\.name))) {
      indices[key(kernel.layout, kernel.source, kernel.cache, isDual: kernel.isDual)] = index
    }
    return indices
  }()

  /// 2 bits layout, 4 bits source dtype, 4 bits cache dtype, 1 bit dual.
  @inline(__always)
  private static func key(_ layout: Layout, _ source: DType, _ cache: DType, isDual: Bool) -> Int {
    layout.rawValue << 9 | Int(source.rawValue) << 5 | Int(cache.rawValue) << 1 | (isDual ? 1 : 0)
  }

  @inline(never)
  private static func unsupported(_ layout: Layout, _ stream: CopyStream, isDual: Bool) -> StatusError {
    let (source, cache) = (stream.source, stream.cache)
    let pairs = table.filter { $0.layout == layout && $0.isDual == isDual }
      .map { "\($0.source) to \($0.cache)" }
      .joined(separator: ", ")
    return StatusError(
      StatusCode.unsupported,
      "\(source.name) is \(source.dtype), \(cache.name) is \(cache.dtype); no kernel copies \(source.dtype) to "
        + "\(cache.dtype) here; supported\(isDual ? " for K and V together" : ""): \(pairs)")
  }
}
