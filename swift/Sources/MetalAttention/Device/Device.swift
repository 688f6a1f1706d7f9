/// A device as one caller opened it: its queue, its kernels, and what it runs.
final class Device {
  /// A queue has 64 command buffers; making one more waits until one ends,
  /// which an uncommitted one never does.
  static let maxEncodingPasses = 60

  let metal: any MTLDevice
  let queue: any MTLCommandQueue
  let registry: KernelRegistry
  let maxBufferLength: Int
  let maxThreadgroupMemoryLength: Int
  let maxThreadsPerThreadgroup: MTLSize
  /// Where it is not known that of a large GPU, M1 Max to M4 Max: too many only spread work further.
  let coreCount: UInt32
  /// Whether products of matrices are many times as fast as other arithmetic.
  let hasMatrixUnits: Bool

  /// Guarded by the lock of `HandleSpace`, as all that follows.
  var isOpen = true
  var encodingPasses = 0
  private var passesOpened: UInt64 = 0
  let tileClasses = TileClassSet()
  let scratch = Scratch()
  /// Has a lock of its own.
  let logs = DispatchLogPool()
  private var inFlight: [any MTLCommandBuffer] = []
  private var events: EventSocket?

  /// - Parameter which: as `ma_device_open_named` takes it; nil for the default device.
  init(_ which: String? = nil) throws(StatusError) {
    let metal: any MTLDevice
    switch systemDevice(which) {
    case .device(let device): metal = device
    case .notUnderstood(let reason): throw StatusError(StatusCode.invalidArgument, "\(arg: "which"): \(reason)")
    case .unavailable(let reason):
      throw StatusError(
        StatusCode.deviceUnavailable, "\(backendName) has no device that can run kernels here: \(reason)")
    }
    // SIMD groups of 32 and their matrices: the GPUs of M1 and later have them, those of Intel's Macs and of virtual
    // machines do not.
    guard metal.supportsFamily(.apple7) else {
      throw StatusError(
        StatusCode.deviceUnavailable,
        "\(metal.name) is no GPU of Metal's family Apple7 or later; Macs with M1 or a later chip have one")
    }
    guard let queue = metal.makeCommandQueue() else {
      throw StatusError(StatusCode.deviceUnavailable, "\(metal.name) has no command queue left")
    }
    self.metal = metal
    self.queue = queue
    registry = KernelRegistry(metal)
    maxBufferLength = metal.maxBufferLength
    maxThreadgroupMemoryLength = metal.maxThreadgroupMemoryLength
    maxThreadsPerThreadgroup = metal.maxThreadsPerThreadgroup
    coreCount = MetalAttention.coreCount(of: metal).map { UInt32(clamping: $0) } ?? 40
    hasMatrixUnits = MetalAttention.hasMatrixUnits(metal)
  }

  /// Makes a zero-filled buffer of `length` bytes.
  func makeBuffer(length: UInt64, storage: Storage) throws(StatusError) -> Buffer {
    try require(length > 0, StatusCode.invalidArgument, "\(arg: "length") is 0 bytes; a buffer has at least 1")
    guard let count = Int(exactly: length), count <= maxBufferLength else {
      throw StatusError(
        StatusCode.invalidArgument, "\(arg: "length") is \(length) bytes; this device allows at most \(maxBufferLength)"
      )
    }
    guard let buffer = metal.makeBuffer(length: count, options: storage.options) else {
      throw allocationError("a buffer of \(length) bytes")
    }
    return Buffer(device: self, metal: buffer, length: length, number: SharedMemory.nextNumber())
  }

  /// Why the device could not allocate `what`: it is lost, or its memory is used up, for which there may be a remedy.
  func allocationError(_ what: Sentence, remedy: Sentence? = nil) -> StatusError {
    guard let reason = lossReason(of: metal) else {
      return StatusError(
        StatusCode.outOfMemory, "the device could not allocate \(what)" + (remedy.map { "; \($0)" } ?? ""))
    }
    return StatusError(StatusCode.deviceUnavailable, "the device could not allocate \(what): \(reason)")
  }

  /// Opens a pass and gives its handle.
  func openPass(concurrent: Bool, profiled: Bool = false) throws(StatusError) -> UInt32 {
    let number = try HandleSpace.lock.withLock { () throws(StatusError) in
      try require(
        encodingPasses < Self.maxEncodingPasses, StatusCode.invalidState,
        "\(encodingPasses) passes of this device are open, as many as it allows; commit or release one")
      encodingPasses += 1
      passesOpened += 1
      return passesOpened
    }
    do throws(StatusError) {
      let pass = try makePass(concurrent: concurrent, profiled: profiled, number: number)
      do throws(StatusError) {
        return try adopt(pass, in: HandleSpace.passes)
      } catch {
        pass.endEncoding()
        throw error
      }
    } catch {
      HandleSpace.lock.withLock { encodingPasses -= 1 }
      throw error
    }
  }

  /// Opens a pass that is recorded, and gives its handle.
  func openRecording(concurrent: Bool) throws(StatusError) -> UInt32 {
    let number = HandleSpace.lock.withLock {
      passesOpened += 1
      return passesOpened
    }
    let pass = Pass(device: self, recording: Recording(), concurrent: concurrent, number: number)
    return try adopt(pass, in: HandleSpace.passes)
  }

  private func makePass(concurrent: Bool, profiled: Bool, number: UInt64) throws(StatusError) -> Pass {
    let failure = StatusError(StatusCode.outOfMemory, "the device could not make a command buffer")
    guard let commandBuffer = queue.makeCommandBuffer() else { throw failure }
    if profiled {
      return Pass(
        device: self, commandBuffer: commandBuffer, profile: try PassProfile(metal, commandBuffer),
        concurrent: concurrent, number: number)
    }
    guard let encoder = commandBuffer.makeComputeCommandEncoder(dispatchType: concurrent ? .concurrent : .serial)
    else { throw failure }
    return Pass(
      device: self, commandBuffer: commandBuffer, encoder: encoder, concurrent: concurrent, number: number)
  }

  /// Gives a handle to what the device owns from now on.
  func adopt<Object>(_ object: Object, in table: HandleTable<Object>) throws(StatusError) -> UInt32 {
    try HandleSpace.lock.withLock { () throws(StatusError) in
      try require(isOpen, StatusCode.invalidHandle, "\(arg: "device"): it was closed meanwhile")
      return try table.insert(object)
    }
  }

  /// Makes the socket for the ends of passes, and gives the end of it that is
  /// the caller's. The caller holds the lock.
  func openEvents() throws(StatusError) -> Int32 {
    try require(isOpen, StatusCode.invalidHandle, "\(arg: "device"): it was closed meanwhile")
    try require(
      events == nil, StatusCode.invalidState, "the device has given its descriptor of events before; it has one")
    guard let (socket, descriptor) = EventSocket.makePair() else {
      throw StatusError(StatusCode.outOfMemory, "the process may open no more files")
    }
    events = socket
    return descriptor
  }

  /// Has the end of a command buffer, which is to be committed, told to the
  /// event loop. The caller holds the lock.
  func notify(endOf commandBuffer: any MTLCommandBuffer) throws(StatusError) {
    guard let events else {
      throw StatusError(StatusCode.invalidState, "nobody listens; call ma_device_events first")
    }
    commandBuffer.addCompletedHandler { _ in events.signal() }
  }

  /// Sends an encoded command buffer to the device. The caller holds the lock.
  func commit(_ commandBuffer: any MTLCommandBuffer) {
    // A queue ends its command buffers in order.
    while let first = inFlight.first, first.status == .completed || first.status == .error {
      inFlight.removeFirst()
    }
    inFlight.append(commandBuffer)
    commandBuffer.commit()
  }

  /// Takes the device and all that it owns from the handle tables, then waits
  /// for what it runs.
  func close() {
    let (buffers, passes, pipelines, memory, running) = HandleSpace.lock.withLock {
      isOpen = false
      let running = inFlight
      inFlight = []
      let passes = HandleSpace.passes.removeAll { $0.device === self }
      for pass in passes { pass.abandon() }
      return (
        HandleSpace.buffers.removeAll { $0.device === self },
        passes,
        HandleSpace.pipelines.removeAll { $0.registry == ObjectIdentifier(registry) },
        scratch.take(),
        running
      )
    }
    for commandBuffer in running { commandBuffer.waitUntilCompleted() }
    // What was removed is freed here, outside the lock and after the wait.
    withExtendedLifetime((buffers, passes, pipelines, memory)) {}
  }
}

extension Storage {
  fileprivate var options: MTLResourceOptions {
    switch self {
    case .shared: .storageModeShared
    case .private: .storageModePrivate
    }
  }
}
