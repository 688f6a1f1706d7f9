/// The grids of the kernels in which a thread turns a pair, or two neighbouring ones, of several heads of a token.
enum HeadGroups {
  /// Threads that keep a GPU busy, and heads for which an angle is computed at least.
  private static let enoughThreads: UInt64 = 1 << 15
  private static let fewestHeads: UInt32 = 4

  /// Groups that `heads` are cut into: all heads share the angles where there are rows enough.
  static func count(of heads: UInt32, columns: UInt32, rows: UInt32) -> UInt32 {
    let threads = max(1, UInt64(columns) * UInt64(rows))
    let wanted = (enoughThreads + threads - 1) / threads
    return max(1, UInt32(min(wanted, UInt64(heads / fewestHeads + (heads % fewestHeads == 0 ? 0 : 1)))))
  }

  /// Tokens of all batches, which kernels count in 32 bits.
  static func rows(batch: UInt32, nTokens: UInt32) throws(StatusError) -> UInt32 {
    let (rows, overflow) = batch.multipliedReportingOverflow(by: nTokens)
    try require(
      !overflow, StatusCode.overflow,
      "\(arg: "batch") \(batch) x \(arg: "nTokens") \(nTokens) exceeds \(UInt32.max)")
    return rows
  }
}
