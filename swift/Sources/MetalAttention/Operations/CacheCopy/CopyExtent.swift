/// The elements that a copy touches, from the start of each stream's tensors,
/// and its grid. All counts have been checked against the tensors.
struct CopyExtent {
  /// Elements of the source and of the cache as the parameters describe them.
  let source: UInt64
  let cache: UInt64
  let read: Range<UInt64>
  let written: Range<UInt64>
  /// A second range written, where a ring wraps; empty otherwise.
  var wrapped: Range<UInt64> = 0..<0

  /// Elements that are contiguous in source and cache.
  let rowSize: UInt32
  /// Rows along the grid's second and third dimension.
  let rows: UInt32
  let planes: UInt32
}
