/// One command buffer with one compute encoder, which takes dispatches until
/// it is committed; or a recording, which is encoded into other passes. Guarded
/// by the lock of `HandleSpace`.
///
/// An operation binds its arguments and then dispatches; only the dispatch
/// can be seen from outside, so a check that fails before it leaves no trace.
final class Pass {
  let device: Device
  /// Nil for a recording.
  let commandBuffer: (any MTLCommandBuffer)?
  /// Of a profiled pass that of the next dispatch, or nil before that begins.
  @exclusivity(unchecked)
  private(set) var encoder: (any MTLComputeCommandEncoder)?
  private let profile: PassProfile?
  /// Whether the device could not make the encoder of a dispatch, which is therefore not encoded.
  private var lacksEncoder = false
  let recording: Recording?
  let isConcurrent: Bool
  /// Which of its device's passes it is; no other ever has the same.
  let number: UInt64
  private(set) var isEncoding = true
  /// Seconds of the clock of command buffers.
  let openTime = Clock.now
  private(set) var commitTime = 0.0
  /// What its dispatches read of tile classes that the library made.
  var usedTileClasses: [MadeTileClasses] = []

  /// In memory of its own: properties of a class are checked for exclusive
  /// access at run time, on each use.
  private let log: UnsafeMutablePointer<DispatchLog>

  init(
    device: Device, commandBuffer: any MTLCommandBuffer, encoder: (any MTLComputeCommandEncoder)?,
    profile: PassProfile?, concurrent: Bool, number: UInt64
  ) {
    self.device = device
    self.commandBuffer = commandBuffer
    self.encoder = encoder
    self.profile = profile
    recording = nil
    isConcurrent = concurrent
    self.number = number
    log = .allocate(capacity: 1)
    log.initialize(to: DispatchLog())
  }

  /// A pass that is recorded, and never sent itself.
  init(device: Device, concurrent: Bool, number: UInt64) {
    self.device = device
    commandBuffer = nil
    encoder = nil
    profile = nil
    recording = Recording()
    isConcurrent = concurrent
    self.number = number
    log = .allocate(capacity: 1)
    log.initialize(to: DispatchLog())
  }

  deinit {
    log.deinitialize(count: 1)
    log.deallocate()
  }

  /// The recorded pass that this one holds as it was recorded, in place of dispatches of its own.
  var replayed: Pass?

  var records: ContiguousArray<DispatchRecord> { replayed?.records ?? log.pointee.records }
  var accesses: ContiguousArray<Access> { replayed?.accesses ?? log.pointee.accesses }

  func requireEncoding() throws(StatusError) {
    try require(
      isEncoding, StatusCode.invalidState, "the pass is committed; encode into a new one")
  }

  /// Selects the kernel of the next dispatch.
  @inline(__always)
  func use(_ pipeline: Pipeline) {
    if let profile, encoder == nil { openEncoder(of: profile) }
    if log.pointee.select(pipeline) || profile != nil { encoder?.setComputePipelineState(pipeline.state) }
  }

  @inline(never)
  private func openEncoder(of profile: PassProfile) {
    encoder = profile.makeEncoder()
    if encoder == nil { lacksEncoder = true }
  }

  /// Binds a buffer from `offset` bytes on, which `note` must follow.
  @inline(__always)
  func bind(_ buffer: Buffer, offset: UInt64, at index: Int) {
    encoder?.setBuffer(buffer.metal, offset: Int(offset), index: index)
    recording?.bind(buffer, offset: offset, at: index)
  }

  /// Binds a copy of a value.
  @inline(__always)
  func bind<Value: BitwiseCopyable>(_ value: Value, at index: Int) {
    withUnsafeBytes(of: value) { bind($0, at: index) }
  }

  /// Binds a copy of bytes.
  @inline(__always)
  func bind(_ bytes: UnsafeRawBufferPointer, at index: Int) {
    guard let address = bytes.baseAddress else { return }
    encoder?.setBytes(address, length: bytes.count, index: index)
    recording?.bind(bytes, at: index)
    log.pointee.keep(bytes, at: index)
  }

  /// The bytes that a dispatch has bound at `index`; none where it has not.
  func argumentBytes(dispatch: UInt32, index: UInt32) throws(StatusError) -> [UInt8] {
    try require(
      Int(dispatch) < records.count, StatusCode.invalidArgument,
      "\(arg: "dispatch") is \(dispatch); the pass has \(records.count)")
    return (replayed ?? self).log.pointee.bytes(ofDispatch: Int(dispatch), at: Int(clamping: index))
  }

  func setThreadgroupMemory(length: Int, at index: Int) {
    encoder?.setThreadgroupMemoryLength(length, index: index)
    recording?.setThreadgroupMemory(length: length, at: index)
  }

  /// Says that the next dispatch reaches a buffer by its address, which `note` must follow.
  func use(_ buffer: Buffer, isWritten: Bool) {
    encoder?.useResource(buffer.metal, usage: isWritten ? [.read, .write] : .read)
    recording?.use(buffer, isWritten: isWritten)
  }

  /// Notes bytes that the next dispatch touches.
  @inline(__always)
  func note(_ access: Access) {
    log.pointee.accesses.append(access)
    recording?.note(access)
    if access.isWrite { device.tileClasses.noteWrite(access, in: self) }
  }

  /// Checks that tile classes are those of a mask as it is now.
  func requireFresh(_ classes: Access, of mask: Access) throws(StatusError) -> MadeTileClasses? {
    recording?.isAlwaysChecked = true
    return try device.tileClasses.requireFresh(classes, of: mask, in: self)
  }

  /// Notes tile classes that the dispatch before makes.
  func addTileClasses(_ classes: Access, of mask: Access) {
    recording?.isAlwaysChecked = true
    device.tileClasses.add(classes, of: mask, in: self)
  }

  /// Encodes the dispatch, behind a barrier where it needs one.
  func dispatch(_ operation: Operation, _ pipeline: Pipeline, _ form: DispatchForm, grid: GridSize, threads: GridSize) {
    let needsBarrier = isConcurrent && log.pointee.conflicts()
    if needsBarrier && profile == nil { encoder?.memoryBarrier(scope: .buffers) }
    switch form {
    case .threadgroups: encoder?.dispatchThreadgroups(grid.metal, threadsPerThreadgroup: threads.metal)
    case .threads: encoder?.dispatchThreads(grid.metal, threadsPerThreadgroup: threads.metal)
    }
    recording?.dispatch(operation, pipeline, form, grid: grid, threads: threads, needsBarrier: needsBarrier)
    log.pointee.record(
      DispatchRecord(
        operation: operation, form: form, needsBarrier: needsBarrier, grid: grid, threadsPerThreadgroup: threads,
        pipeline: .passUnretained(pipeline), accessEnd: log.pointee.accesses.count))
    guard profile != nil else { return }
    encoder?.endEncoding()
    encoder = nil
  }

  /// The device's start and end of each dispatch, in seconds; none unless the pass is profiled and has completed.
  var times: [(start: Double, end: Double)] {
    guard let profile, !isEncoding, commandBuffer?.status == .completed else { return [] }
    return profile.times
  }

  /// Ends the encoding without sending it; Metal does not allow an encoder to
  /// go while it is open.
  func abandon() {
    guard isEncoding else { return }
    endEncoding()
    if recording == nil { device.encodingPasses -= 1 }
    device.tileClasses.noteAbandoned(self)
  }

  /// - Parameter notifies: whether its end is told to the event loop.
  func commit(notifies: Bool) throws(StatusError) {
    try require(isEncoding, StatusCode.invalidState, "the pass is already committed")
    guard let commandBuffer else {
      throw StatusError(StatusCode.invalidState, "the pass is recorded; run it by ma_record_run")
    }
    try require(
      !lacksEncoder, StatusCode.outOfMemory, "the device could not make an encoder for each dispatch of the pass")
    try device.tileClasses.commits.requireMade(for: self)
    if notifies { try device.notify(endOf: commandBuffer) }
    endEncoding()
    device.encodingPasses -= 1
    commitTime = Clock.now
    device.tileClasses.noteCommit(self)
    device.commit(commandBuffer)
  }

  func endEncoding() {
    encoder?.endEncoding()
    isEncoding = false
  }
}
