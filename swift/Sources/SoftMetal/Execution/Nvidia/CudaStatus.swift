/// Statuses of the driver's functions that decide on what is done next.
enum CudaStatus {
  static let success: CudaDriver.Status = 0
  static let notFound: CudaDriver.Status = 500
  static let notReady: CudaDriver.Status = 600
  static let alreadyRegistered: CudaDriver.Status = 712

  /// Whether a kernel did what NVIDIA documents as the end of all the driver's work in the process: an address, an
  /// instruction or an assertion at fault, or a limit of the system's.
  static func isFault(_ status: CudaDriver.Status) -> Bool { [700, 702, 710].contains(status) || 714...719 ~= status }

  /// What a kernel did that ends its context.
  static func code(of status: CudaDriver.Status) -> MTLCommandBufferError.Code {
    switch status {
    case 2: .outOfMemory
    case 700, 716, 717, 718: .pageFault
    case 702: .timeout
    case 714: .stackOverflow
    default: .internal
    }
  }
}
