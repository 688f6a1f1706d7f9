import CMetalAttention

extension Pass {
  var info: MAPassInfo {
    var info = MAPassInfo()
    info.state = UInt32(state)
    info.dispatches = UInt32(clamping: records.count)
    if state == MA_PASS_COMPLETED || state == MA_PASS_FAILED {
      info.gpuStartTime = commandBuffer.gpuStartTime
      info.gpuEndTime = commandBuffer.gpuEndTime
    }
    return info
  }

  /// The device's error, once the pass has failed.
  var failure: StatusError? {
    guard !isEncoding, commandBuffer.status == .error else { return nil }
    let reason = commandBuffer.error.map { "\($0)" } ?? "the device gave no reason"
    return StatusError(StatusCode.execution, "the pass failed: \(reason)")
  }

  private var state: Int {
    if isEncoding { return MA_PASS_ENCODING }
    return switch commandBuffer.status {
    case .completed: MA_PASS_COMPLETED
    case .error: MA_PASS_FAILED
    default: MA_PASS_COMMITTED
    }
  }
}
