/// Which of the machine's devices is meant.
enum DeviceChoice: Equatable {
  case processor
  /// An NVIDIA GPU, counted from 0.
  case gpu(Int)

  /// - Parameter text: `cpu`, `nvidia` for the first GPU, or an index in `MTLCopyAllDevices()`.
  init(_ text: String) throws(DeviceError) {
    switch text {
    case "cpu", "0": self = .processor
    case "nvidia": self = .gpu(0)
    default:
      guard let index = Int(text), index > 0 else {
        throw DeviceError(
          "'\(text)' is no device; expected cpu, nvidia, or an index: 0 for the CPU, GPUs from 1 on", isOfName: true)
      }
      self = .gpu(index - 1)
    }
  }

  func open(_ settings: DeviceSettings) throws(DeviceError) -> SoftDevice {
    switch self {
    case .processor: return try SoftDevice(settings: settings)
    case .gpu(let ordinal):
      let driver = try CudaDriver()
      let count = try CudaContext.count(driver)
      guard ordinal < count else {
        throw DeviceError(
          "there is no NVIDIA GPU of index \(ordinal + 1): the driver, \(CudaDriver.libraryName), has \(count)")
      }
      return try SoftDevice(settings: settings, gpu: CudaContext(driver, ordinal: ordinal))
    }
  }
}

/// Opens a device by its name; nil: the default one, as the environment says.
package func openDevice(_ which: String?) throws(DeviceError) -> any MTLDevice {
  let settings = try DeviceSettings(environment: Files.environment)
  let choice = if let which { try DeviceChoice(which) } else { settings.choice }
  return try choice.open(settings)
}
