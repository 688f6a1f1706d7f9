/// The tokens that an operation writes or reads, by position before wrapping.
enum CacheRange {
  /// Checks a run of `count` tokens from position `start` against a cache of
  /// `capacity` slots.
  @inline(__always)
  static func requireRun(
    of count: UInt32, _ countName: StaticString, from start: UInt32, _ startName: StaticString,
    capacity: UInt32, _ capacityName: StaticString, isRing: Bool
  ) throws(StatusError) {
    try requireSlots(capacity, capacityName)
    // Two tokens in one slot would race.
    try require(
      count <= capacity, StatusCode.overflow,
      "\(countName) \(count) exceeds \(capacityName) \(capacity); one call takes at most as many tokens as the cache holds"
    )
    let end = try sum(start, startName, count, countName)
    try require(
      isRing || end <= UInt64(capacity), StatusCode.overflow,
      "\(startName) \(start) + \(countName) \(count) exceeds \(capacityName) \(capacity); a linear cache ends there")
  }

  /// Checks a single position that a linear cache of `capacity` slots must have.
  @inline(__always)
  static func requireSlot(
    _ position: UInt32, _ name: StaticString, capacity: UInt32, _ capacityName: StaticString,
    isRing: Bool = false, otherwise remedy: StaticString
  ) throws(StatusError) {
    try requireSlots(capacity, capacityName)
    try require(
      isRing || position < capacity, StatusCode.overflow,
      "\(name) \(position) is not below \(capacityName) \(capacity); \(remedy)")
  }

  /// The flag that tells a ring (1) from a linear cache (0).
  @inline(__always)
  static func isRing(_ flag: UInt32, _ name: StaticString) throws(StatusError) -> Bool {
    try require(flag <= 1, StatusCode.invalidArgument, "\(name) is \(flag); it is 0 or 1")
    return flag == 1
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

  @inline(__always)
  private static func requireSlots(_ capacity: UInt32, _ capacityName: StaticString) throws(StatusError) {
    try require(
      capacity > 0, StatusCode.invalidArgument, "\(capacityName) is 0; a cache has at least 1 slot")
  }
}
