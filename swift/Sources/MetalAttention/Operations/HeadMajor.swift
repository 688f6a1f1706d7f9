/// A head-major array [nHeads, capacity, headDim].
struct HeadMajor {
  let nHeads: UInt32
  let capacity: UInt32
  let headDim: UInt32

  @inline(__always)
  var elements: Count { Count(nHeads) * capacity * headDim }

  /// The elements from the first to the last of `count` tokens, at most
  /// `capacity`, in the slots from `position` on, modulo the capacity, of every
  /// head. `elements` has been checked.
  @inline(__always)
  func rows(_ count: UInt32, from position: UInt32) -> Range<UInt64> {
    let first = UInt64(position % capacity)
    let last = first + UInt64(count)
    let row = UInt64(headDim)
    // Past the end, the slots include the first and the last.
    if last > UInt64(capacity) { return 0..<(UInt64(nHeads) * UInt64(capacity) * row) }
    return (first * row)..<((UInt64(nHeads - 1) * UInt64(capacity) + last) * row)
  }
}
