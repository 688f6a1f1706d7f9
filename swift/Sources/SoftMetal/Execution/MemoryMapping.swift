/// What makes memory of the process the device's too.
protocol MemoryMapping: AnyObject, Sendable {
  /// - Parameter size: bytes, whole pages.
  /// - Returns: false where the device has no room for them.
  func map(_ pointer: UnsafeMutableRawPointer, size: Int) -> Bool

  func unmap(_ pointer: UnsafeMutableRawPointer)
}
