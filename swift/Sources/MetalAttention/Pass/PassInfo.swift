import CMetalAttention

extension Pass {
  var info: MAPassInfo {
    var info = MAPassInfo()
    info.state = state.rawValue
    info.dispatches = UInt32(clamping: records.count)
    info.openTime = openTime
    info.commitTime = commitTime
    if let commandBuffer, state == .completed || state == .failed {
      info.gpuStartTime = commandBuffer.gpuStartTime
      info.gpuEndTime = commandBuffer.gpuEndTime
    }
    return info
  }

  /// The device's error, once the pass has failed.
  var failure: StatusError? {
    guard !isEncoding, let commandBuffer, commandBuffer.status == .error else { return nil }
    let reason = commandBuffer.error.map { "\($0)" } ?? "the device gave no reason"
    return StatusError(StatusCode.execution, "the pass failed: \(reason)")
  }

  private var state: PassState {
    guard !isEncoding, let commandBuffer else { return .encoding }
    return switch commandBuffer.status {
    case .completed: .completed
    case .error: .failed
    default: .committed
    }
  }
}
