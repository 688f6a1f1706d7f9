import CMetalAttention

#if compiler(>=6.3)
  @c(ma_device_open)
#else
  @_cdecl("ma_device_open")
#endif
public func deviceOpen(device: UnsafeMutablePointer<UInt32>?) -> Int32 {
  status("ma_device_open") { () throws(StatusError) in
    let out = try unwrap(device, "device")
    let device = try Device()
    let handle = try HandleSpace.lock.withLock { () throws(StatusError) in try HandleSpace.devices.insert(device) }
    store(handle, to: out)
  }
}

#if compiler(>=6.3)
  @c(ma_device_close)
#else
  @_cdecl("ma_device_close")
#endif
public func deviceClose(device: UInt32) -> Int32 {
  status("ma_device_close") { () throws(StatusError) in
    try HandleSpace.devices.close(device, "device").close()
  }
}

#if compiler(>=6.3)
  @c(ma_device_info)
#else
  @_cdecl("ma_device_info")
#endif
public func deviceInfo(device: UInt32, info: UnsafeMutablePointer<MADeviceInfo>?) -> Int32 {
  status("ma_device_info") { () throws(StatusError) in
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(info, "info")
    store(device.info, to: out)
  }
}
