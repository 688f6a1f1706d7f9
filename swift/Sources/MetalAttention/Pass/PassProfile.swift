/// The device's time of each dispatch of a pass: sampled before and after it
/// where the GPU does so between dispatches. Others, Apple's among them, sample
/// their clock where an encoder begins and ends, so each dispatch gets one of its own.
final class PassProfile {
  /// Of a sample buffer, two for each dispatch: a device allows 4,096.
  private static let samples = 1024

  /// Where the times are sampled; names are those of a description.
  enum SamplingPoint {
    case dispatch
    case stage
  }

  let samplingPoint: SamplingPoint
  private let device: any MTLDevice
  private let counterSet: any MTLCounterSet
  private let commandBuffer: any MTLCommandBuffer
  private var buffers: [any MTLCounterSampleBuffer] = []
  private var dispatches = 0
  /// Of the dispatch that is being encoded, or of all.
  private var encoder: (any MTLComputeCommandEncoder)?
  /// Whether the device could not make the encoder of a dispatch, which is therefore not encoded.
  private(set) var lacksEncoder = false

  init(_ device: any MTLDevice, _ commandBuffer: any MTLCommandBuffer) throws(StatusError) {
    let timestamps = device.counterSets?.first { $0.name == MTLCommonCounterSet.timestamp.rawValue }
    let unsupported = StatusError(StatusCode.unsupported, "this device does not tell the time of a dispatch")
    guard let timestamps else { throw unsupported }
    if device.supportsCounterSampling(.atDispatchBoundary) {
      samplingPoint = .dispatch
    } else if device.supportsCounterSampling(.atStageBoundary) {
      samplingPoint = .stage
    } else {
      throw unsupported
    }
    self.device = device
    self.commandBuffer = commandBuffer
    counterSet = timestamps
    try addBuffer()
  }

  /// Begins a dispatch; gives its encoder.
  @inline(never)
  func beginDispatch() -> (any MTLComputeCommandEncoder)? {
    if 2 * dispatches % Self.samples == 0, dispatches > 0 { try? addBuffer() }
    dispatches += 1
    switch samplingPoint {
    case .dispatch:
      if encoder == nil { encoder = commandBuffer.makeComputeCommandEncoder(dispatchType: .serial) }
      sample(0)
    case .stage: encoder = makeEncoder()
    }
    if encoder == nil { lacksEncoder = true }
    return encoder
  }

  func endDispatch() {
    switch samplingPoint {
    case .dispatch: sample(1)
    case .stage: endEncoding()
    }
  }

  func endEncoding() {
    encoder?.endEncoding()
    encoder = nil
  }

  /// Where the first sample of the dispatch that is being encoded goes; nil where no more can be measured.
  private var place: (buffer: any MTLCounterSampleBuffer, index: Int)? {
    guard let buffer = buffers.last, buffers.count == (dispatches - 1) / (Self.samples / 2) + 1 else { return nil }
    return (buffer, 2 * (dispatches - 1) % Self.samples)
  }

  private func sample(_ number: Int) {
    guard let place else { return }
    encoder?.sampleCounters(sampleBuffer: place.buffer, sampleIndex: place.index + number, barrier: true)
  }

  /// An encoder that samples where it begins and ends.
  private func makeEncoder() -> (any MTLComputeCommandEncoder)? {
    let descriptor = MTLComputePassDescriptor()
    if let attachment = descriptor.sampleBufferAttachments[0], let place {
      attachment.sampleBuffer = place.buffer
      attachment.startOfEncoderSampleIndex = place.index
      attachment.endOfEncoderSampleIndex = place.index + 1
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
