/// Statuses of the driver's functions that decide on what is done next.
enum CudaStatus {
  static let success: CudaDriver.Status = 0
  static let notFound: CudaDriver.Status = 500
  static let notReady: CudaDriver.Status = 600
  static let alreadyRegistered: CudaDriver.Status = 712

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
