/// The tokens that an operation writes or reads, by position before wrapping.
enum CacheRange {
  /// Positions that attention counts in 32 bits with room for sums.
  static let mostPositions: UInt32 = 1 << 30

  /// Checks a number of positions, or of the slots for them, that attention counts.
  @inline(__always)
  static func requirePositions(_ count: some FixedWidthInteger, _ name: Argument) throws(StatusError) {
    try require(
      count <= mostPositions, StatusCode.overflow, "\(name) \(count) exceeds \(mostPositions) positions")
  }

  /// Checks a run of `count` tokens from position `start` against a cache of
  /// `capacity` slots.
  @inline(__always)
  static func requireRun(
    of count: UInt32, _ countName: Argument, from start: UInt32, _ startName: Argument,
    capacity: UInt32, _ capacityName: Argument, of cache: TensorName, isRing: Bool, _ ringName: Argument
  ) throws(StatusError) {
    try requireSlots(capacity, capacityName, of: cache)
    // Two tokens in one slot would race.
    try require(
      count <= capacity, StatusCode.overflow,
      "\(countName) \(count) exceeds \(capacityName) \(capacity); one call takes at most as many tokens as the cache holds"
    )
    let end = try sum(start, startName, count, countName)
    try require(
      isRing || end <= UInt64(capacity), StatusCode.overflow,
      "\(startName) \(start) + \(countName) \(count) exceeds \(capacityName) \(capacity); a linear cache ends there, \(ringName) makes it a ring"
    )
  }

  /// Checks a single position that a linear cache of `capacity` slots must have.
  @inline(__always)
  static func requireSlot(
    _ position: UInt32, _ name: Argument, capacity: UInt32, _ capacityName: Argument, of cache: TensorName,
    isRing: Bool, _ ringName: Argument
  ) throws(StatusError) {
    try requireSlots(capacity, capacityName, of: cache)
    try require(
      isRing || position < capacity, StatusCode.overflow,
      "\(name) \(position) is not below \(capacityName) \(capacity); a linear cache ends there, \(ringName) makes it a ring"
    )
  }

  /// Checks a run of `count` tokens from token `offset` of a source that has `total`.
  @inline(__always)
  static func requireSource(
    _ count: UInt32, _ countName: Argument, from offset: UInt32, _ offsetName: Argument,
    of total: UInt32, _ totalName: Argument
  ) throws(StatusError) {
    try require(
      UInt64(offset) + UInt64(count) <= UInt64(total), StatusCode.bufferTooSmall,
      "\(offsetName) \(offset) + \(countName) \(count) exceeds \(totalName) \(total), the tokens of the source")
  }

  /// The flag that tells a ring (1) from a linear cache (0).
  @inline(__always)
  static func isRing(_ flag: UInt32, _ name: Argument) throws(StatusError) -> Bool {
    try require(flag <= 1, StatusCode.invalidArgument, "\(name) is \(flag); it is 0 or 1")
    return flag == 1
  }

  /// The heads of all batches, which kernels count in 32 bits.
  @inline(__always)
  static func heads(_ nHeads: UInt32, _ name: Argument, batch: UInt32) throws(StatusError) -> UInt32 {
    try require(batch > 0, StatusCode.invalidArgument, "\(arg: "batch") is 0; it is at least 1")
    let (heads, overflow) = nHeads.multipliedReportingOverflow(by: batch)
    try require(
      !overflow, StatusCode.overflow, "\(arg: "batch") \(batch) x \(name) \(nHeads) exceeds \(UInt32.max)")
    return heads
  }

  /// For messages: the batch only where there is one.
  static func headsFormula(_ nHeads: UInt32, _ name: Argument, batch: UInt32) -> Sentence {
    batch == 1 ? "\(name) \(nHeads)" : "\(arg: "batch") \(batch) x \(name) \(nHeads)"
  }

  /// A sum that kernels form in 32 bits.
  @inline(__always)
  private static func sum(
    _ start: UInt32, _ startName: Argument, _ count: UInt32, _ countName: Argument
  ) throws(StatusError) -> UInt64 {
    let end = UInt64(start) + UInt64(count)
    try require(
      end <= UInt64(UInt32.max), StatusCode.overflow,
      "\(startName) \(start) + \(countName) \(count) exceeds \(UInt32.max); wrap the position first")
    return end
  }

  @inline(__always)
  static func requireSlots(
    _ capacity: UInt32, _ capacityName: Argument, of cache: TensorName
  ) throws(StatusError) {
    try require(
      capacity > 0, StatusCode.invalidArgument, "\(cache): \(capacityName) is 0; a cache has at least 1 slot")
  }
}
