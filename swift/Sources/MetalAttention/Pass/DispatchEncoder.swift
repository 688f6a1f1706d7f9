/// Encodes one dispatch into a pass: binds its arguments, notes what it touches,
/// and dispatches. Metal's encoder is fetched once for all of that, because to
/// count its references for each call would cost more than the call's checks.
struct DispatchEncoder {
  /// Kept alive by whoever encodes into it.
  private let pass: Unmanaged<Pass>
  private let log: UnsafeMutablePointer<DispatchLog>
  /// Kept alive by the registry of the pass's device, or where it is a caller's by the pass.
  private let pipeline: Unmanaged<Pipeline>
  /// Nil for a recording.
  private let encoder: (any MTLComputeCommandEncoder)?
  private let isRecorded: Bool
  private let isProfiled: Bool
  private let isConcurrent: Bool

  @inline(__always)
  init(pass: Pass, pipeline: Pipeline) {
    self.pass = .passUnretained(pass)
    self.pipeline = .passUnretained(pipeline)
    log = pass.log
    isRecorded = pass.recording != nil
    isProfiled = pass.profile != nil
    isConcurrent = pass.isConcurrent
    let isSelected: Bool
    if let profile = pass.profile {
      encoder = profile.beginDispatch()
      log.pointee.forgetBound()
      isSelected = false
    } else {
      encoder = pass.encoder
      isSelected = !log.pointee.select(pipeline)
    }
    if !isSelected { encoder?.setComputePipelineState(pipeline.state) }
  }

  /// Binds a buffer from `offset` bytes on, which `note` must follow.
  @inline(__always)
  func bind(_ buffer: Unmanaged<Buffer>, offset: UInt64, at index: Int) {
    buffer._withUnsafeGuaranteedRef { buffer in
      if log.pointee.bind(buffer.metal, offset: offset, at: index) {
        encoder?.setBuffer(buffer.metal, offset: Int(offset), index: index)
      }
    }
    if isRecorded { recording?.bind(buffer, offset: offset, at: index) }
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
    if isRecorded { recording?.bind(bytes, at: index) }
    log.pointee.keep(bytes, at: index)
  }

  @inline(__always)
  func setThreadgroupMemory(length: Int, at index: Int) {
    encoder?.setThreadgroupMemoryLength(length, index: index)
    if isRecorded { recording?.setThreadgroupMemory(length: length, at: index) }
  }

  /// Says that the dispatch reaches a buffer by its address, which `note` must follow.
  func use(_ buffer: Unmanaged<Buffer>, isWritten: Bool) {
    buffer._withUnsafeGuaranteedRef { encoder?.useResource($0.metal, usage: isWritten ? [.read, .write] : .read) }
    recording?.use(buffer, isWritten: isWritten)
  }

  /// Notes bytes that the dispatch touches.
  @inline(__always)
  func note(_ access: Access) {
    log.pointee.accesses.append(access)
    if isRecorded { recording?.note(access) }
    if access.isWrite { pass._withUnsafeGuaranteedRef { $0.tileClasses.noteWrite(access, in: $0) } }
  }

  /// Encodes the dispatch, behind a barrier where it needs one.
  @inline(__always)
  func dispatch(_ operation: Operation, _ form: DispatchForm, grid: GridSize, threads: GridSize) {
    let needsBarrier = isConcurrent && log.pointee.conflicts()
    // A profiled pass runs one dispatch after the other.
    if needsBarrier && !isProfiled { encoder?.memoryBarrier(scope: .buffers) }
    switch form {
    case .threadgroups: encoder?.dispatchThreadgroups(grid.metal, threadsPerThreadgroup: threads.metal)
    case .threads: encoder?.dispatchThreads(grid.metal, threadsPerThreadgroup: threads.metal)
    }
    if isRecorded {
      recording?.dispatch(operation, pipeline, form, grid: grid, threads: threads, needsBarrier: needsBarrier)
    }
    log.pointee.record(
      DispatchRecord(
        operation: operation, form: form, needsBarrier: needsBarrier, grid: grid, threadsPerThreadgroup: threads,
        pipeline: pipeline, accessEnd: log.pointee.accesses.count))
    if isProfiled { pass._withUnsafeGuaranteedRef { $0.profile?.endDispatch() } }
  }

  private var recording: Recording? { pass._withUnsafeGuaranteedRef { $0.recording } }
}
