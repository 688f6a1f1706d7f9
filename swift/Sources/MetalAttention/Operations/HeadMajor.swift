/// A head-major array [nHeads, capacity, rowSize].
struct HeadMajor {
  /// The elements of a run of slots: from the first to the last of all heads.
  /// Where the run wraps, `wrapped` has those of the first head's first slots,
  /// and `elements` goes to the array's end; otherwise it is empty.
  struct Slots {
    let elements: Range<UInt64>
    var wrapped: Range<UInt64> = 0..<0
  }

  let nHeads: UInt32
  let capacity: UInt32
  let rowSize: UInt32

  @inline(__always)
  var elements: Count { Count(nHeads) * capacity * rowSize }

  /// The elements of `count` tokens, at most `capacity`, in the slots from
  /// `position` on, modulo the capacity. `elements` has been checked.
  @inline(__always)
  func slots(_ count: UInt32, from position: UInt32) -> Slots {
    let first = UInt64(position % capacity)
    let last = first + UInt64(count)
    let row = UInt64(rowSize)
    let lastHead = UInt64(nHeads - 1) * UInt64(capacity)
    let end = min(last, UInt64(capacity))
    return Slots(elements: (first * row)..<((lastHead + end) * row), wrapped: 0..<((last - end) * row))
  }
}
