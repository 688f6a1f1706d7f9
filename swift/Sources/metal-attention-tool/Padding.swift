extension String {
  /// Left-aligned in a column of `width` characters.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: Swift.max(0, width - count))
  }
}

extension Int {
  /// Right-aligned in a column of `width` characters.
  func padded(to width: Int) -> String {
    let digits = String(self)
    return String(repeating: " ", count: Swift.max(0, width - digits.count)) + digits
  }
}
