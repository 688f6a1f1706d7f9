/// Checks each call and records it in the command buffer's list.
///
/// Metal's debug layer ends the process on a misuse; here it becomes the
/// command buffer's error.
final class SoftComputeCommandEncoder: MTLComputeCommandEncoder {
  private static let maxBytesLength = 4096

  var label: String?
  private let list: CommandList
  private let number: Int
  private let isSerial: Bool
  private let table = ArgumentTable()
  private let samples: EncoderSamples?
  private var pipeline: SoftComputePipelineState?

  init(list: CommandList, number: Int, dispatchType: MTLDispatchType, samples: EncoderSamples? = nil) {
    self.samples = samples
    self.list = list
    self.number = number
    isSerial = dispatchType == .serial
  }

  func endEncoding() {
    if let samples { list.sample(samples.buffer, at: samples.end) }
    list.end(encoder: number)
  }

  func setComputePipelineState(_ state: any MTLComputePipelineState) {
    record("setComputePipelineState") { () throws(MTLCommandBufferError) in
      guard let pipeline = state as? SoftComputePipelineState else {
        throw MTLCommandBufferError(.internal, "setComputePipelineState: the pipeline is not SoftMetal's")
      }
      list.retain(pipeline)
      self.pipeline = pipeline
    }
  }

  func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int) {
    if let buffer, rebind(buffer, offset: offset, index: index) { return }
    record("setBuffer") { () throws(MTLCommandBufferError) in
      try ArgumentTable.check(index: index, "setBuffer")
      guard let buffer else {
        table.buffers[index] = ArgumentTable.Binding(address: 0, length: 0)
        return
      }
      guard let buffer = buffer as? SoftBuffer, buffer.memory === list.memory else {
        throw MTLCommandBufferError(.invalidResource, "setBuffer: buffer(\(index)) belongs to another device")
      }
      guard 0...buffer.length ~= offset else {
        throw MTLCommandBufferError(
          .invalidResource,
          "setBuffer: buffer(\(index)): offset \(offset) is beyond the buffer's length of \(buffer.length) bytes")
      }
      list.retain(buffer)
      table.buffers[index] = ArgumentTable.Binding(
        address: UInt(bitPattern: buffer.pointer) + UInt(offset), length: buffer.length - offset)
    }
  }

  /// Binds a buffer that the list has retained, and so found to be of its device; false where this one is none, or
  /// anything else is amiss. The caller holds the buffer meanwhile, so that no reference is counted.
  @inline(__always)
  private func rebind(_ buffer: any MTLBuffer, offset: Int, index: Int) -> Bool {
    let object = buffer as AnyObject
    guard type(of: object) == SoftBuffer.self, list.isRecording(number), ArgumentTable.indices ~= index else {
      return false
    }
    let known = Unmanaged<SoftBuffer>.fromOpaque(Unmanaged.passUnretained(object).toOpaque())
    guard known._withUnsafeGuaranteedRef({ list.hasRetained($0) && 0...$0.length ~= offset }) else { return false }
    table.buffers[index] = known._withUnsafeGuaranteedRef {
      ArgumentTable.Binding(address: UInt(bitPattern: $0.pointer) + UInt(offset), length: $0.length - offset)
    }
    return true
  }

  func setBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int) {
    record("setBytes") { () throws(MTLCommandBufferError) in
      try ArgumentTable.check(index: index, "setBytes")
      guard 1...Self.maxBytesLength ~= length else {
        throw MTLCommandBufferError(
          .internal, "setBytes: buffer(\(index)): length is \(length) bytes; expected 1 to \(Self.maxBytesLength)")
      }
      guard let copy = list.copy(bytes, length: length) else {
        throw MTLCommandBufferError(.outOfMemory, "setBytes: buffer(\(index)): no memory for \(length) bytes")
      }
      table.buffers[index] = ArgumentTable.Binding(address: UInt(bitPattern: copy), length: length)
    }
  }

  func useResource(_ resource: any MTLResource, usage: MTLResourceUsage) {
    record("useResource") { () throws(MTLCommandBufferError) in
      guard let buffer = resource as? SoftBuffer, buffer.memory === list.memory else {
        throw MTLCommandBufferError(.invalidResource, "useResource: the resource belongs to another device")
      }
      list.retain(buffer)
    }
  }

  func setThreadgroupMemoryLength(_ length: Int, index: Int) {
    record("setThreadgroupMemoryLength") { () throws(MTLCommandBufferError) in
      try ArgumentTable.check(index: index, "setThreadgroupMemoryLength")
      guard 0...ArgumentTable.maxThreadgroupMemoryLength ~= length, length % 16 == 0 else {
        throw MTLCommandBufferError(
          .internal,
          "setThreadgroupMemoryLength: threadgroup(\(index)): length is \(length) bytes; "
            + "expected a multiple of 16 of at most \(ArgumentTable.maxThreadgroupMemoryLength)")
      }
      table.threadgroupLengths[index] = length
    }
  }

  func dispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
    record("dispatchThreadgroups") { () throws(MTLCommandBufferError) in
      try append(DispatchGrid(threadgroups: threadgroupsPerGrid, threadsPerThreadgroup: threadsPerThreadgroup))
    }
  }

  func dispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
    record("dispatchThreads") { () throws(MTLCommandBufferError) in
      try append(DispatchGrid(threads: threadsPerGrid, threadsPerThreadgroup: threadsPerThreadgroup))
    }
  }

  func memoryBarrier(scope: MTLBarrierScope) {
    record("memoryBarrier") { () throws(MTLCommandBufferError) in
      if scope.contains(.buffers) { list.appendBarrier() }
    }
  }

  func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool) {
    record("sampleCounters") { () throws(MTLCommandBufferError) in
      guard let buffer = sampleBuffer as? SoftCounterSampleBuffer else {
        throw MTLCommandBufferError(.internal, "sampleCounters: the sample buffer is not SoftMetal's")
      }
      guard buffer.isOfDispatches else {
        throw MTLCommandBufferError(.internal, "sampleCounters: the device does not support atDispatchBoundary")
      }
      if barrier { list.appendBarrier() }
      list.sample(buffer, at: sampleIndex)
    }
  }

  private func append(_ grid: DispatchGrid) throws(MTLCommandBufferError) {
    guard let pipeline else {
      throw MTLCommandBufferError(.internal, "dispatch: no pipeline is set; call setComputePipelineState first")
    }
    try grid.check(for: pipeline)
    try list.append(pipeline, table, grid)
    if isSerial { list.appendBarrier() }
  }

  /// Runs `body` if this encoder may record, and keeps what it throws.
  @inline(__always)
  private func record(_ call: StaticString, _ body: () throws(MTLCommandBufferError) -> Void) {
    guard list.isRecording(number) else { return list.refuse(call) }
    do throws(MTLCommandBufferError) {
      try body()
    } catch {
      list.fail(error)
    }
  }
}
