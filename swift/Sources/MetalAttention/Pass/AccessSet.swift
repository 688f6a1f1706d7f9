/// A union of byte ranges of buffers, kept as disjoint intervals in order, so
/// that a query costs a binary search however many dispatches came before.
struct AccessSet {
  private struct Interval {
    var buffer: UInt32
    var start: UInt64
    var end: UInt64
  }

  /// The first `count` in the order of (buffer, start); no two touch. What follows is room for more: the set is
  /// emptied at nearly every barrier, and an array would take its elements out one call each.
  private var intervals = ContiguousArray<Interval>()
  private var count = 0

  func overlaps(_ access: Access) -> Bool {
    let index = firstIndex(of: access.buffer, endingAfter: access.start)
    return index < count && intervals[index].buffer == access.buffer && intervals[index].start < access.end
  }

  mutating func insert(_ access: Access) {
    // An interval that ends where the access starts is merged as well.
    let first = firstIndex(of: access.buffer, endingAfter: access.start &- (access.start > 0 ? 1 : 0))
    var merged = Interval(buffer: access.buffer, start: access.start, end: access.end)
    var last = first
    while last < count, intervals[last].buffer == access.buffer, intervals[last].start <= access.end {
      merged.start = min(merged.start, intervals[last].start)
      merged.end = max(merged.end, intervals[last].end)
      last += 1
    }
    if last == first {
      if count == intervals.count { intervals.append(merged) }
      var index = count
      while index > first {
        intervals[index] = intervals[index - 1]
        index -= 1
      }
      count += 1
    } else {
      let gone = last - first - 1
      if gone > 0 { for index in last..<count { intervals[index - gone] = intervals[index] } }
      count -= gone
    }
    intervals[first] = merged
  }

  mutating func removeAll() {
    count = 0
  }

  /// The first interval of `buffer` that ends after `position`.
  private func firstIndex(of buffer: UInt32, endingAfter position: UInt64) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      let interval = intervals[middle]
      if interval.buffer < buffer || (interval.buffer == buffer && interval.end <= position) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
