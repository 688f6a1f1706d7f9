/// The elements of a strided tensor (batch, head, row, column), whose columns
/// are contiguous.
struct AttnExtent {
  let counts: (batch: UInt64, heads: UInt64, rows: UInt64)
  let strides: (batch: UInt64, heads: UInt64, rows: UInt64)
  let columns: UInt64

  /// - Parameter strides: elements; zero repeats, negative is refused.
  @inline(__always)
  init(
    _ name: Argument, _ counts: (batch: Int32, heads: Int32, rows: Int32), _ strides: (Int64, Int64, Int64),
    _ columns: Int32
  ) throws(StatusError) {
    try require(
      strides.0 >= 0 && strides.1 >= 0 && strides.2 >= 0, StatusCode.invalidArgument,
      "\(name): strides \(strides.0), \(strides.1), \(strides.2); none may be negative")
    self.counts = (
      UInt64(truncatingIfNeeded: counts.batch), UInt64(truncatingIfNeeded: counts.heads),
      UInt64(truncatingIfNeeded: counts.rows)
    )
    self.strides = (
      UInt64(truncatingIfNeeded: strides.0), UInt64(truncatingIfNeeded: strides.1),
      UInt64(truncatingIfNeeded: strides.2)
    )
    self.columns = UInt64(truncatingIfNeeded: columns)
  }

  /// Elements from the first to the last.
  @inline(__always)
  var elements: Count {
    let batch = Count(counts.batch - 1) * strides.batch
    let head = Count(counts.heads - 1) * strides.heads
    let row = Count(counts.rows - 1) * strides.rows
    return batch + head + row + columns
  }

  /// For messages.
  var formula: Sentence {
    "(\(counts.batch) - 1) x \(strides.batch) + (\(counts.heads) - 1) x \(strides.heads)"
      + " + (\(counts.rows) - 1) x \(strides.rows) + \(columns)"
  }

  /// Whether no two of its elements share an address: each dimension, from the
  /// smallest stride to the largest, steps over all of those before it.
  /// `elements` has been checked.
  @inline(__always)
  var isInjective: Bool {
    var dimensions = (
      (stride: strides.rows, count: counts.rows), (stride: strides.heads, count: counts.heads),
      (stride: strides.batch, count: counts.batch)
    )
    if dimensions.0.stride > dimensions.1.stride { swap(&dimensions.0, &dimensions.1) }
    if dimensions.1.stride > dimensions.2.stride { swap(&dimensions.1, &dimensions.2) }
    if dimensions.0.stride > dimensions.1.stride { swap(&dimensions.0, &dimensions.1) }
    var reach = columns
    return Self.steps(dimensions.0, over: &reach) && Self.steps(dimensions.1, over: &reach)
      && Self.steps(dimensions.2, over: &reach)
  }

  /// Whether a dimension steps over `reach` elements; extends them by it.
  @inline(__always)
  private static func steps(_ dimension: (stride: UInt64, count: UInt64), over reach: inout UInt64) -> Bool {
    if dimension.count == 1 { return true }
    if dimension.stride < reach { return false }
    reach += (dimension.count - 1) * dimension.stride
    return true
  }
}
