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
  /// Which of its device's passes it is; no other ever has the same.
  let number: UInt64
  private(set) var isEncoding = true

  /// In memory of its own: properties of a class are checked for exclusive
  /// access at run time, on each use.
  private let log: UnsafeMutablePointer<DispatchLog>

  init(
    device: Device, commandBuffer: any MTLCommandBuffer, encoder: any MTLComputeCommandEncoder, concurrent: Bool,
    number: UInt64
  ) {
    self.device = device
    self.commandBuffer = commandBuffer
    self.encoder = encoder
    isConcurrent = concurrent
    self.number = number
    log = .allocate(capacity: 1)
    log.initialize(to: DispatchLog())
  }

  deinit {
    log.deinitialize(count: 1)
    log.deallocate()
  }

  var records: ContiguousArray<DispatchRecord> { log.pointee.records }
  var accesses: ContiguousArray<Access> { log.pointee.accesses }

  func requireEncoding() throws(StatusError) {
    try require(
      isEncoding, StatusCode.invalidState, "the pass is committed; encode into a new one")
  }

  /// Selects the kernel of the next dispatch.
  @inline(__always)
  func use(_ pipeline: Pipeline) {
    if log.pointee.select(pipeline) { encoder.setComputePipelineState(pipeline.state) }
  }

  /// Binds a buffer from `offset` bytes on, which `note` must follow.
  @inline(__always)
  func bind(_ buffer: Buffer, offset: UInt64, at index: Int) {
    encoder.setBuffer(buffer.metal, offset: Int(offset), index: index)
  }

  /// Binds memory of the library's own.
  func bind(_ buffer: any MTLBuffer, offset: UInt64, at index: Int) {
    encoder.setBuffer(buffer, offset: Int(offset), index: index)
  }

  /// Binds a copy of a value.
  @inline(__always)
  func bind<Value: BitwiseCopyable>(_ value: Value, at index: Int) {
    withUnsafeBytes(of: value) { bytes in
      guard let address = bytes.baseAddress else { return }
      encoder.setBytes(address, length: bytes.count, index: index)
      log.pointee.keep(bytes, at: index)
    }
  }

  func bind(_ bytes: UnsafeRawBufferPointer, at index: Int) {
    guard let address = bytes.baseAddress else { return }
    encoder.setBytes(address, length: bytes.count, index: index)
    log.pointee.keep(bytes, at: index)
  }

  /// The bytes that a dispatch has bound at `index`; none where it has not.
  func argumentBytes(dispatch: UInt32, index: UInt32) throws(StatusError) -> [UInt8] {
    try require(
      Int(dispatch) < records.count, StatusCode.invalidArgument,
      "\(arg: "dispatch") is \(dispatch); the pass has \(records.count)")
    return log.pointee.bytes(ofDispatch: Int(dispatch), at: Int(clamping: index))
  }

  func setThreadgroupMemory(length: Int, at index: Int) {
    encoder.setThreadgroupMemoryLength(length, index: index)
  }

  /// Notes bytes that the next dispatch touches.
  @inline(__always)
  func note(_ access: Access) {
    log.pointee.accesses.append(access)
    if access.isWrite { device.tileClasses.noteWrite(access) }
  }

  /// Encodes the dispatch, behind a barrier where it needs one.
  func dispatch(_ operation: Operation, _ pipeline: Pipeline, _ form: DispatchForm, grid: GridSize, threads: GridSize) {
    let needsBarrier = isConcurrent && log.pointee.conflicts()
    if needsBarrier { encoder.memoryBarrier(scope: .buffers) }
    switch form {
    case .threadgroups: encoder.dispatchThreadgroups(grid.metal, threadsPerThreadgroup: threads.metal)
    case .threads: encoder.dispatchThreads(grid.metal, threadsPerThreadgroup: threads.metal)
    }
    log.pointee.record(
      DispatchRecord(
        operation: operation, form: form, needsBarrier: needsBarrier, grid: grid, threadsPerThreadgroup: threads,
        pipeline: .passUnretained(pipeline), accessEnd: log.pointee.accesses.count))
  }

  /// Ends the encoding without sending it; Metal does not allow an encoder to
  /// go while it is open.
  func abandon() {
    guard isEncoding else { return }
    endEncoding()
    device.encodingPasses -= 1
    device.tileClasses.noteAbandoned(self)
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
