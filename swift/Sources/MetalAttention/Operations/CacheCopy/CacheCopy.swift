/// Encodes a copy of any layout once its parameters are checked: kernel
/// variant, arguments and grid.
enum CacheCopy {
  /// Target number of threads per threadgroup.
  static let threadsPerThreadgroup: UInt32 = 1024

  /// - Parameter kernel: index in `BuiltInKernel.all`.
  /// - Returns: the slot of a pipeline to compile first, or nil when encoded.
  @inline(__always)
  static func encode<Params: BitwiseCopyable>(
    _ operation: Operation, kernel: Int, into pass: Pass, _ k: CopyStream, _ v: CopyStream?, _ extent: CopyExtent,
    _ params: Params
  ) throws(StatusError) -> PipelineSlot? {
    try requireApart(k, v, extent)

    // 16 bytes of the larger dtype.
    let width = 16 / max(k.source.dtype.size, k.cache.dtype.size)
    let isVector = extent.rowSize % width == 0 && isAligned(k, width) && v.map { isAligned($0, width) } ?? true
    let isWide = max(extent.source, extent.cache) > 1 << 31
    let slot = PipelineSlot(kernel: kernel, variant: (isVector ? 1 : 0) | (isWide ? 2 : 0))
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }

    let encoder = pass.use(pipeline)
    if let v {
      bind(k, at: 0, 2, in: encoder, extent)
      bind(v, at: 1, 3, in: encoder, extent)
      encoder.bind(params, at: 4)
    } else {
      bind(k, at: 0, 1, in: encoder, extent)
      encoder.bind(params, at: 2)
    }
    let grid = GridSize(isVector ? extent.rowSize / width : extent.rowSize, extent.rows, extent.planes)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(operation, .threads, grid: grid, threads: threads)
    return nil
  }

  /// Whether vectors of so many elements are aligned in both tensors.
  @inline(__always)
  private static func isAligned(_ stream: CopyStream, _ width: UInt32) -> Bool {
    stream.source.offset % (UInt64(width) * UInt64(stream.source.dtype.size)) == 0
      && stream.cache.offset % (UInt64(width) * UInt64(stream.cache.dtype.size)) == 0
  }

  @inline(__always)
  private static func bind(
    _ stream: CopyStream, at sourceIndex: Int, _ cacheIndex: Int, in encoder: DispatchEncoder, _ extent: CopyExtent
  ) {
    encoder.bind(stream.source.buffer, offset: stream.source.offset, at: sourceIndex)
    encoder.bind(stream.cache.buffer, offset: stream.cache.offset, at: cacheIndex)
    encoder.note(stream.source.access(extent.read, isWrite: false))
    let written = extent.written
    encoder.note(stream.cache.access(written.elements, isWrite: true))
    if !written.wrapped.isEmpty { encoder.note(stream.cache.access(written.wrapped, isWrite: true)) }
  }

  /// A cache must not overlap any other tensor of the dispatch.
  @inline(__always)
  private static func requireApart(_ k: CopyStream, _ v: CopyStream?, _ extent: CopyExtent) throws(StatusError) {
    try requireApart(k.cache, extent.cache, k.source, extent.source)
    guard let v else { return }
    try requireApart(v.cache, extent.cache, v.source, extent.source)
    try requireApart(k.cache, extent.cache, v.source, extent.source)
    try requireApart(v.cache, extent.cache, k.source, extent.source)
    try requireApart(k.cache, extent.cache, v.cache, extent.cache)
  }

  @inline(__always)
  private static func requireApart(
    _ cache: Tensor, _ cacheElements: UInt64, _ other: Tensor, _ otherElements: UInt64
  ) throws(StatusError) {
    try cache.access(0..<cacheElements, isWrite: true).requireApart(
      cache.name, from: other.access(0..<otherElements, isWrite: false), other.name)
  }
}

/// The elements that a copy touches, from the start of each stream's tensors,
/// and its grid. All counts have been checked against the tensors.
struct CopyExtent {
  /// Elements of the source and of the cache as the parameters describe them.
  let source: UInt64
  let cache: UInt64
  let read: Range<UInt64>
  let written: HeadMajor.Slots

  /// Elements that are contiguous in source and cache.
  let rowSize: UInt32
  /// Rows along the grid's second and third dimension.
  let rows: UInt32
  let planes: UInt32
}
