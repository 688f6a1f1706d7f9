/// The device that runs kernels on the CPU, then those NVIDIA GPUs that can run them: new ones at each call.
public func MTLCopyAllDevices() -> [any MTLDevice] {
  guard let settings = try? DeviceSettings(environment: Files.environment) else { return [] }
  var devices: [any MTLDevice] = []
  if let processor = try? SoftDevice(settings: settings) { devices.append(processor) }
  guard let driver = try? CudaDriver(), let count = try? CudaContext.count(driver) else { return devices }
  for ordinal in 0..<count {
    if let gpu = try? SoftDevice(settings: settings, gpu: CudaContext(driver, ordinal: ordinal)) { devices.append(gpu) }
  }
  return devices
}
