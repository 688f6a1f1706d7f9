/// What makes memory of the process the device's too, and gives memory of the device's own.
protocol MemoryMapping: AnyObject, Sendable {
  /// - Parameter size: bytes, whole pages.
  /// - Returns: false where the device has no room for them.
  func map(_ pointer: UnsafeMutableRawPointer, size: Int) -> Bool

  /// Calls `free` as soon as the device has let go of the memory: at once, after a fault with the device, and never where
  /// a kernel goes on that may reach it. Its addresses would otherwise come again while they still lead there.
  func unmap(_ pointer: UnsafeMutableRawPointer, _ free: @escaping () -> Void)

  /// Memory that the device alone sees; nil where it has no room for it.
  ///
  /// - Parameters:
  ///   - length: bytes, not rounded: a tool that watches the device's allocations then knows where a buffer ends.
  ///   - isZeroed: whether it is filled with zeros; else it holds what was there before.
  /// - Returns: its address, which leads nowhere in the process.
  func allocate(length: Int, isZeroed: Bool) -> UnsafeMutableRawPointer?

  func deallocate(_ address: UnsafeMutableRawPointer)
}
