/// Memory that the CPU and the device share, or the device's own.
final class Buffer {
  let device: Device
  let metal: any MTLBuffer
  /// Bytes.
  let length: UInt64
  /// Where the CPU finds it; nil for the device's own.
  var contents: UnsafeMutableRawPointer? { metal.storageMode == .private ? nil : metal.contents() }
  /// Which memory of the process it is; other devices may have buffers over the same.
  let number: UInt64
  /// Whether its handle has not been released. Guarded by the lock of
  /// `HandleSpace`, so without a run-time check of exclusive access.
  @exclusivity(unchecked)
  var isOpen = true

  init(device: Device, metal: any MTLBuffer, length: UInt64, number: UInt64) {
    self.device = device
    self.metal = metal
    self.length = length
    self.number = number
  }
}

extension Unmanaged where Instance == Buffer {
  /// Checks that the buffer is of `device`, which is only compared, and has `length` bytes from `offset`
  /// on; gives where they end.
  @inline(__always)
  func requireRange(
    _ offset: UInt64, _ length: UInt64, of device: ObjectIdentifier, _ argument: @autoclosure () -> Argument
  ) throws(StatusError) -> UInt64 {
    let isOfDevice = _withUnsafeGuaranteedRef { ObjectIdentifier($0.device) == device }
    try require(
      isOfDevice, StatusCode.invalidHandle, "\(argument()): its buffer belongs to another device than the pass")
    let most = _withUnsafeGuaranteedRef { $0.length }
    let (end, overflow) = offset.addingReportingOverflow(length)
    try require(
      !overflow && end <= most, StatusCode.bufferTooSmall,
      "\(argument()): \(length) bytes from offset \(offset) leave its buffer of \(most) bytes")
    return end
  }
}
