/// Memory that the CPU and the device share.
final class Buffer {
  let device: Device
  let metal: any MTLBuffer
  /// Bytes.
  let length: UInt64

  init(device: Device, metal: any MTLBuffer, length: UInt64) {
    self.device = device
    self.metal = metal
    self.length = length
  }
}
