/// The distinct planes [qL, kL] of a mask: a stride of 0 shares one among all
/// batches or heads.
struct MaskPlanes: Equatable {
  let batches: UInt32
  let heads: UInt32

  @inline(__always)
  init(batches: Int32, heads: Int32, strides: (Int64, Int64, Int64)) {
    self.batches = strides.0 == 0 ? 1 : UInt32(bitPattern: batches)
    self.heads = strides.1 == 0 ? 1 : UInt32(bitPattern: heads)
  }

  @inline(__always)
  var count: Count { Count(batches) * heads }

  /// Tile classes of all planes.
  @inline(__always)
  func tiles(_ queryTiles: Int32, _ keyTiles: Int32) -> Count {
    count * UInt32(bitPattern: queryTiles) * UInt32(bitPattern: keyTiles)
  }

  /// For messages.
  func formula(_ queryTiles: Int32, _ keyTiles: Int32) -> Sentence {
    "\(batches) x \(heads) planes x \(arg: "NQ") \(queryTiles) x \(arg: "NK") \(keyTiles)"
  }
}
