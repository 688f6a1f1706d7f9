/// One command buffer with one compute encoder, which takes dispatches until
/// it is committed; or a recording, which is encoded into other passes. Guarded
/// by the lock of `HandleSpace`.
///
/// An operation begins a dispatch when its checks have passed: a refusal leaves
/// no trace.
final class Pass {
  let device: Device
  /// Of `device`, where it is only compared: without a count of references.
  let deviceIdentity: ObjectIdentifier
  /// The device's, here as well because each write that is encoded looks at them.
  let tileClasses: TileClassSet
  /// Nil for a recording.
  let commandBuffer: (any MTLCommandBuffer)?
  /// Of all its dispatches. Nil for a recording, and for a profiled pass, whose
  /// dispatches have one each.
  let encoder: (any MTLComputeCommandEncoder)?
  let profile: PassProfile?
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
  /// Pipelines of the caller's, to which its dispatches refer without a count.
  private(set) var keptPipelines: [Pipeline] = []

  /// In memory of its own: properties of a class are checked for exclusive
  /// access at run time, on each use.
  let log: UnsafeMutablePointer<DispatchLog>

  /// - Parameter recording: of a pass that is recorded, and has no command buffer.
  init(
    device: Device, commandBuffer: (any MTLCommandBuffer)? = nil, encoder: (any MTLComputeCommandEncoder)? = nil,
    profile: PassProfile? = nil, recording: Recording? = nil, concurrent: Bool, number: UInt64
  ) {
    self.device = device
    deviceIdentity = ObjectIdentifier(device)
    tileClasses = device.tileClasses
    self.commandBuffer = commandBuffer
    self.encoder = encoder
    self.profile = profile
    self.recording = recording
    isConcurrent = concurrent
    self.number = number
    log = .allocate(capacity: 1)
    log.initialize(to: device.logs.take())
  }

  deinit {
    device.logs.give(log.move())
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

  /// Keeps a pipeline that the registry lets go when its source is replaced.
  func keep(_ pipeline: Pipeline) {
    if pipeline.lastKeeper == number { return }
    pipeline.lastKeeper = number
    keptPipelines.append(pipeline)
  }

  /// Begins a dispatch.
  @inline(__always)
  func use(_ pipeline: Pipeline) -> DispatchEncoder {
    DispatchEncoder(pass: self, pipeline: pipeline)
  }

  /// The bytes that a dispatch has bound at `index`; none where it has not.
  func argumentBytes(dispatch: UInt32, index: UInt32) throws(StatusError) -> [UInt8] {
    try require(
      Int(dispatch) < records.count, StatusCode.invalidArgument,
      "\(arg: "dispatch") is \(dispatch); the pass has \(records.count)")
    return (replayed ?? self).log.pointee.bytes(ofDispatch: Int(dispatch), at: Int(clamping: index))
  }

  /// Checks that tile classes are those of a mask as it is now.
  func requireFresh(
    _ classes: Access, of mask: Access, _ geometry: MaskGeometry
  ) throws(StatusError) -> MadeTileClasses? {
    recording?.isAlwaysChecked = true
    return try device.tileClasses.requireFresh(classes, of: mask, geometry, in: self)
  }

  /// Notes tile classes that the dispatch before makes.
  func addTileClasses(_ classes: Access, of mask: Access, _ geometry: MaskGeometry) {
    recording?.isAlwaysChecked = true
    device.tileClasses.add(classes, of: mask, geometry, in: self)
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
      profile?.lacksEncoder != true, StatusCode.outOfMemory,
      "the device could not make an encoder for each dispatch of the pass")
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
    profile?.endEncoding()
    isEncoding = false
  }
}
