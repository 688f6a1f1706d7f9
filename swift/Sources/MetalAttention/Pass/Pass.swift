/// One command buffer with one compute encoder, which takes dispatches until
/// it is committed. Guarded by the lock of `HandleSpace`.
///
/// An operation binds its arguments and then dispatches; only the dispatch
/// can be seen from outside, so a check that fails before it leaves no trace.
final class Pass {
  let device: Device
  let commandBuffer: any MTLCommandBuffer
  private let encoder: any MTLComputeCommandEncoder
  private let isConcurrent: Bool
  private(set) var isEncoding = true

  private(set) var records = ContiguousArray<DispatchRecord>()
  /// What the dispatches touch, in their order, then what is bound for the
  /// next one.
  private(set) var accesses: [Access] = []
  private var recordedAccesses = 0
  private var hazards = HazardTracker()
  private var currentPipeline: Pipeline?

  init(
    device: Device, commandBuffer: any MTLCommandBuffer, encoder: any MTLComputeCommandEncoder, concurrent: Bool
  ) {
    self.device = device
    self.commandBuffer = commandBuffer
    self.encoder = encoder
    isConcurrent = concurrent
    records.reserveCapacity(64)
    accesses.reserveCapacity(256)
  }

  func requireEncoding() throws(StatusError) {
    try require(
      isEncoding, StatusCode.invalidState, "the pass is committed; encode into a new one")
  }

  /// Selects the kernel of the next dispatch.
  @inline(__always)
  func use(_ pipeline: Pipeline) {
    if currentPipeline !== pipeline {
      encoder.setComputePipelineState(pipeline.state)
      currentPipeline = pipeline
    }
  }

  /// Binds a buffer from `offset` bytes on, which `noteAccess` must follow.
  @inline(__always)
  func bind(_ buffer: Buffer, offset: UInt64, at index: Int) {
    encoder.setBuffer(buffer.metal, offset: Int(offset), index: index)
  }

  /// Binds a copy of a value.
  @inline(__always)
  func bind<Value: BitwiseCopyable>(_ value: Value, at index: Int) {
    withUnsafeBytes(of: value) { bytes in
      guard let address = bytes.baseAddress else { return }
      encoder.setBytes(address, length: bytes.count, index: index)
    }
  }

  func bind(_ bytes: UnsafeRawBufferPointer, at index: Int) {
    guard let address = bytes.baseAddress else { return }
    encoder.setBytes(address, length: bytes.count, index: index)
  }

  func setThreadgroupMemory(length: Int, at index: Int) {
    encoder.setThreadgroupMemoryLength(length, index: index)
  }

  /// Notes bytes that the next dispatch touches.
  @inline(__always)
  func note(_ access: Access) {
    accesses.append(access)
  }

  /// Encodes the dispatch, behind a barrier where it needs one.
  func dispatch(_ operation: Operation, _ pipeline: Pipeline, _ form: DispatchForm, grid: GridSize, threads: GridSize) {
    let needsBarrier = isConcurrent && hazards.admit(accesses[recordedAccesses...])
    if needsBarrier { encoder.memoryBarrier(scope: .buffers) }
    switch form {
    case .threadgroups: encoder.dispatchThreadgroups(grid.metal, threadsPerThreadgroup: threads.metal)
    case .threads: encoder.dispatchThreads(grid.metal, threadsPerThreadgroup: threads.metal)
    }
    recordedAccesses = accesses.count
    records.append(
      DispatchRecord(
        operation: operation, form: form, needsBarrier: needsBarrier, grid: grid, threadsPerThreadgroup: threads,
        pipeline: pipeline, accessEnd: recordedAccesses))
  }

  /// Ends the encoding without sending it; Metal does not allow an encoder to
  /// go while it is open.
  func abandon() {
    guard isEncoding else { return }
    endEncoding()
    device.encodingPasses -= 1
  }

  func commit() throws(StatusError) {
    try require(isEncoding, StatusCode.invalidState, "the pass is already committed")
    endEncoding()
    device.encodingPasses -= 1
    device.commit(commandBuffer)
  }

  func endEncoding() {
    encoder.endEncoding()
    isEncoding = false
  }
}
