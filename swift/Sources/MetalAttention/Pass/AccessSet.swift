/// A union of byte ranges of buffers, kept as disjoint intervals in order, so
/// that a query costs a binary search however many dispatches came before.
struct AccessSet {
  private struct Interval {
    var buffer: UInt32
    var start: UInt64
    var end: UInt64
  }

  /// In the order of (buffer, start); no two touch.
  private var intervals = ContiguousArray<Interval>()

  func overlaps(_ access: Access) -> Bool {
    let index = firstIndex(of: access.buffer, endingAfter: access.start)
    return index < intervals.count && intervals[index].buffer == access.buffer && intervals[index].start < access.end
  }

  mutating func insert(_ access: Access) {
    // An interval that ends where the access starts is merged as well.
    let first = firstIndex(of: access.buffer, endingAfter: access.start &- (access.start > 0 ? 1 : 0))
    var merged = Interval(buffer: access.buffer, start: access.start, end: access.end)
    var last = first
    while last < intervals.count, intervals[last].buffer == access.buffer, intervals[last].start <= access.end {
      merged.start = min(merged.start, intervals[last].start)
      merged.end = max(merged.end, intervals[last].end)
      last += 1
    }
    if first == intervals.count {
      intervals.append(merged)
    } else if last == first {
      intervals.insert(merged, at: first)
    } else {
      intervals[first] = merged
      if last > first + 1 { intervals.removeSubrange((first + 1)..<last) }
    }
  }

  mutating func removeAll() {
    intervals.removeAll(keepingCapacity: true)
  }

  /// The first interval of `buffer` that ends after `position`.
  private func firstIndex(of buffer: UInt32, endingAfter position: UInt64) -> Int {
    var low = 0
    var high = intervals.count
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
