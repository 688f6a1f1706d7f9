import CMetalAttention

/// The pages of each sequence, i32 [batch, pages], in a pool.
enum BlockTable {
  /// Checks the sizes of pages: without a table there are none.
  /// - Parameters:
  ///   - tokens: slots of a page.
  ///   - pool: pages that there are.
  ///   - capacity: slots of a sequence.
  @inline(__always)
  static func checkPages<Size: FixedWidthInteger>(
    of tokens: Size, _ tokensName: Argument, pool: Size, _ poolName: Argument, capacity: Size, _ capacityName: Argument,
    hasTable: Bool
  ) throws(StatusError) {
    try require(
      (tokens != 0) == hasTable, StatusCode.invalidArgument,
      "\(TensorName.blockTable) and \(tokensName) \(tokens) go together: both, or neither")
    if !hasTable {
      try require(
        pool == 0, StatusCode.invalidArgument,
        "\(poolName) is \(pool), but \(TensorName.blockTable) is absent; it is 0 then")
      return
    }
    try require(tokens > 0, StatusCode.invalidArgument, "\(tokensName) is \(tokens); it is at least 1")
    try require(
      capacity % tokens == 0, StatusCode.invalidArgument,
      "\(capacityName) \(capacity) is not a multiple of \(tokensName) \(tokens)")
    try require(pool > 0, StatusCode.invalidArgument, "\(poolName): a pool of \(pool) pages; it has at least 1")
    try require(
      pool <= CacheRange.mostPositions, StatusCode.overflow,
      "\(poolName): a pool of \(pool) pages; it has at most \(CacheRange.mostPositions)")
  }

  /// Checks that a cache that is attended to is no ring of pages.
  @inline(__always)
  static func requireNoRing(_ isRing: Bool, hasTable: Bool) throws(StatusError) {
    try require(
      !isRing || !hasTable, StatusCode.unsupported,
      "\(arg: "is_sliding") is 1 with pages; a ring has none, a window ends the keys")
  }

  /// What a write reads of its table.
  static func use(
    _ table: MATensor, batch: UInt32, pages: UInt32, in pass: Pass
  ) throws(StatusError) -> TensorUse {
    let tensor = try Tensor(table, .blockTable, in: pass)
    try tensor.requireDType(.i32)
    let elements = Count(batch) * pages
    try tensor.requireRoom(for: elements, "\(arg: "batch") \(batch) x \(pages) pages")
    return .whole(tensor, isWrite: false, elements: elements.value)
  }
}
