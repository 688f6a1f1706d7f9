/// What makes memory of the process the device's too, and gives memory of the device's own.
protocol MemoryMapping: AnyObject, Sendable {
  /// - Parameter size: bytes, whole pages.
  /// - Returns: false where the device has no room for them.
  func map(_ pointer: UnsafeMutableRawPointer, size: Int) -> Bool

  func unmap(_ pointer: UnsafeMutableRawPointer)

  /// Zeros that the device alone sees; nil where it has no room for them.
  ///
  /// - Parameter size: bytes, whole pages.
  /// - Returns: their address, which leads nowhere in the process.
  func allocate(size: Int) -> UnsafeMutableRawPointer?

  func deallocate(_ address: UnsafeMutableRawPointer)
}
