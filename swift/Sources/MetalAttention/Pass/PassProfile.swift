/// The device's time of each dispatch of a pass. An Apple GPU samples its clock
/// where an encoder begins and where it ends, so each dispatch gets one of its own.
final class PassProfile {
  /// Of a sample buffer, two for each dispatch: a device allows 4,096.
  private static let samples = 1024

  private let device: any MTLDevice
  private let counterSet: any MTLCounterSet
  private let commandBuffer: any MTLCommandBuffer
  private var buffers: [any MTLCounterSampleBuffer] = []
  private var dispatches = 0
  /// Of the dispatch that is being encoded.
  private var encoder: (any MTLComputeCommandEncoder)?
  /// Whether the device could not make the encoder of a dispatch, which is therefore not encoded.
  private(set) var lacksEncoder = false

  init(_ device: any MTLDevice, _ commandBuffer: any MTLCommandBuffer) throws(StatusError) {
    let timestamps = device.counterSets?.first { $0.name == MTLCommonCounterSet.timestamp.rawValue }
    guard let timestamps, device.supportsCounterSampling(.atStageBoundary) else {
      throw StatusError(StatusCode.unsupported, "this device does not tell the time of a dispatch")
    }
    self.device = device
    self.commandBuffer = commandBuffer
    counterSet = timestamps
    try addBuffer()
  }

  /// Opens the encoder of the next dispatch.
  @inline(never)
  func openEncoder() -> (any MTLComputeCommandEncoder)? {
    encoder = makeEncoder()
    if encoder == nil { lacksEncoder = true }
    return encoder
  }

  func endEncoder() {
    encoder?.endEncoding()
    encoder = nil
  }

  /// Where no more can be measured, an encoder that is not.
  private func makeEncoder() -> (any MTLComputeCommandEncoder)? {
    let first = 2 * dispatches % Self.samples
    if first == 0, dispatches > 0 { try? addBuffer() }
    dispatches += 1
    let descriptor = MTLComputePassDescriptor()
    if let attachment = descriptor.sampleBufferAttachments[0], let buffer = buffers.last,
      buffers.count == (dispatches - 1) / (Self.samples / 2) + 1
    {
      attachment.sampleBuffer = buffer
      attachment.startOfEncoderSampleIndex = first
      attachment.endOfEncoderSampleIndex = first + 1
    }
    return commandBuffer.makeComputeCommandEncoder(descriptor: descriptor)
  }

  private func addBuffer() throws(StatusError) {
    let descriptor = MTLCounterSampleBufferDescriptor()
    descriptor.counterSet = counterSet
    descriptor.storageMode = .shared
    descriptor.sampleCount = Self.samples
    do {
      buffers.append(try device.makeCounterSampleBuffer(descriptor: descriptor))
    } catch {
      throw StatusError(StatusCode.outOfMemory, "the device could not make a buffer of times: \(error)")
    }
  }

  /// Start and end of each dispatch in seconds, once the command buffer has
  /// completed: the device's ticks, laid between its start and its end.
  var times: [(start: Double, end: Double)] {
    let ticks = buffers.flatMap { buffer -> [UInt64] in
      guard let data = try? buffer.resolveCounterRange(0..<Self.samples) else { return [] }
      return data.withUnsafeBytes { Array($0.bindMemory(to: UInt64.self)) }
    }.prefix(2 * dispatches)
    guard let first = ticks.min(), let last = ticks.max(), last > first else { return [] }
    let (start, end) = (commandBuffer.gpuStartTime, commandBuffer.gpuEndTime)
    let scale = (end - start) / Double(last - first)
    func seconds(_ tick: UInt64) -> Double { start + Double(tick - first) * scale }
    return stride(from: 0, to: ticks.count - 1, by: 2).map { (seconds(ticks[$0]), seconds(ticks[$0 + 1])) }
  }
}
