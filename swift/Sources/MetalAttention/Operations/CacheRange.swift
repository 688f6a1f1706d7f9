/// The tokens that a copy writes, by position before wrapping.
enum CacheRange {
  /// Checks a run of `count` tokens from position `start` against a cache of
  /// `capacity` slots, and gives the position after its last.
  @inline(__always)
  static func end(
    of count: UInt32, _ countName: StaticString, from start: UInt32, _ startName: StaticString,
    capacity: UInt32, _ capacityName: StaticString
  ) throws(StatusError) -> UInt64 {
    try require(
      capacity > 0, StatusCode.invalidArgument, "\(capacityName) is 0; a cache has at least 1 slot")
    // Two tokens in one slot would race.
    try require(
      count <= capacity, StatusCode.overflow,
      "\(countName) \(count) exceeds \(capacityName) \(capacity); copy at most as many tokens as the cache holds")
    return try sum(start, startName, count, countName)
  }

  /// A sum that kernels form in 32 bits.
  @inline(__always)
  static func sum(
    _ start: UInt32, _ startName: StaticString, _ count: UInt32, _ countName: StaticString
  ) throws(StatusError) -> UInt64 {
    let end = UInt64(start) + UInt64(count)
    try require(
      end <= UInt64(UInt32.max), StatusCode.overflow,
      "\(startName) \(start) + \(countName) \(count) exceeds \(UInt32.max); wrap the position first")
    return end
  }
}
