import CMetalAttention

extension Exports {
  static func deviceOpen(_ device: UnsafeMutablePointer<UInt32>?) throws(StatusError) {
    let out = try unwrap(device, "device")
    try open(Device(), out)
  }

  static func deviceOpenNamed(
    _ which: UnsafePointer<CChar>?, _ device: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    let which = try read(which, "which")
    let out = try unwrap(device, "device")
    try open(Device(which), out)
  }

  private static func open(_ device: Device, _ out: UnsafeMutablePointer<UInt32>) throws(StatusError) {
    let handle = try HandleSpace.lock.withLock { () throws(StatusError) in try HandleSpace.devices.insert(device) }
    store(handle, to: out)
  }

  static func deviceClose(_ device: UInt32) throws(StatusError) {
    try HandleSpace.devices.close(device, "device").close()
  }

  static func deviceInfo(_ device: UInt32, _ info: UnsafeMutablePointer<MADeviceInfo>?) throws(StatusError) {
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(info, "info")
    store(device.info, to: out)
  }

  static func deviceEvents(_ device: UInt32, _ descriptor: UnsafeMutablePointer<Int32>?) throws(StatusError) {
    let out = try unwrap(descriptor, "descriptor")
    let descriptor = try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.devices.resolve(device, "device").openEvents()
    }
    store(descriptor, to: out)
  }
}
