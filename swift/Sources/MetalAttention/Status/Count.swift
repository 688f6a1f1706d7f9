/// A 64-bit count of elements or bytes that remembers whether a sum or product
/// on its way left 64 bits.
struct Count {
  private(set) var value: UInt64
  private(set) var overflowed = false

  @inline(__always)
  init(_ value: some UnsignedInteger & FixedWidthInteger) {
    self.value = UInt64(value)
  }

  @inline(__always)
  static func * (left: Count, right: Count) -> Count {
    var result = left
    let (value, overflow) = left.value.multipliedReportingOverflow(by: right.value)
    result.value = value
    result.overflowed = left.overflowed || right.overflowed || overflow
    return result
  }

  @inline(__always)
  static func + (left: Count, right: Count) -> Count {
    var result = left
    let (value, overflow) = left.value.addingReportingOverflow(right.value)
    result.value = value
    result.overflowed = left.overflowed || right.overflowed || overflow
    return result
  }

  @inline(__always)
  static func * (left: Count, right: some UnsignedInteger & FixedWidthInteger) -> Count {
    left * Count(right)
  }

  @inline(__always)
  static func + (left: Count, right: some UnsignedInteger & FixedWidthInteger) -> Count {
    left + Count(right)
  }
}
