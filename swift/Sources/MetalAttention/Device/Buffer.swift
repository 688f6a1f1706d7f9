/// Memory that the CPU and the device share.
final class Buffer {
  let device: Device
  let metal: any MTLBuffer
  /// Bytes.
  let length: UInt64
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
