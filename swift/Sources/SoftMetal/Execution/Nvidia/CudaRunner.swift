import CSoftMetal
import Glibc

/// Runs commands on an NVIDIA GPU: one stream keeps them in order, and a word that kernels write tells how far it has come.
final class CudaRunner: CommandRunner, @unchecked Sendable {
  private struct Sample {
    let buffer: SoftCounterSampleBuffer
    let index: Int
    let event: CudaDriver.Pointer
  }

  private let context: CudaContext
  /// Seconds that one dispatch may take; 0 for any time.
  private let timeLimit: Double
  private let stream: CudaDriver.Pointer
  private let start: CudaDriver.Pointer
  private let end: CudaDriver.Pointer
  /// Not 0: threads end at the next turn of a loop that nothing bounds. In the device's memory, for they look each time.
  private let stop: UnsafeMutableRawPointer
  /// What writes it while kernels run.
  private let stopper: CudaDriver.Pointer
  /// A page that the GPU writes: how many dispatches of the list have begun. Absent arguments lie behind it.
  private let progress: UnsafeMutableRawPointer
  /// Of the next launch.
  private let parameter = LaunchParameter()
  private var uploads: [ByteArena.Upload] = []
  private var places: [DispatchPlace] = []
  private var samples: [Sample] = []

  private var driver: CudaDriver { context.driver }

  /// The page's parts: the word, and as much as any argument that a kernel reads ahead of its condition has.
  private static let absentOffset = 256
  private static let pageLength = 64 * 1024

  /// Nil where the driver has no stream or memory left.
  init?(_ context: CudaContext, timeLimit: Double) {
    let page = UnsafeMutableRawPointer.allocate(byteCount: Self.pageLength, alignment: Processor.pageSize)
    page.initializeMemory(as: UInt8.self, repeating: 0, count: Self.pageLength)
    var stream: CudaDriver.Pointer?
    var stopper: CudaDriver.Pointer?
    var start: CudaDriver.Pointer?
    var end: CudaDriver.Pointer?
    let driver = context.driver
    context.perform {
      // It waits for no other stream.
      _ = driver.createStream(&stream, 1)
      _ = driver.createStream(&stopper, 1)
      _ = driver.createEvent(&start, 0)
      _ = driver.createEvent(&end, 0)
    }
    let stop = context.allocate(length: MemoryLayout<UInt32>.size, isZeroed: true)
    guard let stream, let stopper, let start, let end, let stop, context.map(page, size: Self.pageLength) else {
      if let stop { context.deallocate(stop) }
      context.perform {
        for made in [stream, stopper] { if let made { _ = driver.destroyStream(made) } }
        for made in [start, end] { if let made { _ = driver.destroyEvent(made) } }
      }
      page.deallocate()
      return nil
    }
    (self.context, self.timeLimit, self.stream, self.start, self.end) = (context, timeLimit, stream, start, end)
    (self.stop, self.stopper, progress) = (stop, stopper, page)
  }

  deinit {
    let progress = progress
    context.unmap(progress) { progress.deallocate() }
    guard context.lossReason == nil else { return }
    context.deallocate(stop)
    context.perform {
      _ = driver.destroyStream(stream)
      _ = driver.destroyStream(stopper)
      _ = driver.destroyEvent(start)
      _ = driver.destroyEvent(end)
    }
  }

  func begin(_ uploads: [ByteArena.Upload]) throws(MTLCommandBufferError) {
    try requireContext()
    self.uploads = uploads
    places.removeAll(keepingCapacity: true)
    samples.removeAll()
    progress.storeBytes(of: 0, as: UInt32.self)
    try check(context.perform { driver.recordEvent(start, stream) }, "cuEventRecord", nil)
    for upload in uploads {
      let target = UInt64(UInt(bitPattern: upload.target))
      let status = context.perform { driver.copyToDeviceLater(target, upload.source, upload.length, stream) }
      try check(status, "cuMemcpyHtoDAsync", nil)
    }
  }

  private func requireContext() throws(MTLCommandBufferError) {
    if let reason = context.lossReason { throw MTLCommandBufferError(.deviceRemoved, reason) }
  }

  func run(_ dispatch: SmDispatch, _ place: DispatchPlace) throws(MTLCommandBufferError) {
    guard let kernel = place.pipeline.gpuKernel else {
      throw MTLCommandBufferError(.internal, "\(place.described) was not compiled for this device")
    }
    for value in kernel.values {
      try parameter.take(value, of: dispatch, from: uploads) { target, address, length throws(MTLCommandBufferError) in
        // What is before this dispatch may write it.
        try wait()
        try check(context.perform { driver.copyFromDevice(target, UInt64(address), length) }, "cuMemcpyDtoH", place)
      }
    }
    places.append(place)
    var parameters = SmGpuDispatch()
    parameters.stop = stop.assumingMemoryBound(to: UInt32.self)
    parameters.started = progress.assumingMemoryBound(to: UInt32.self)
    parameters.number = UInt32(places.count)
    let absent = UnsafeMutableRawPointer(progress + Self.absentOffset)
    withUnsafeMutableBytes(of: &parameters.buffers) { target in
      withUnsafeBytes(of: dispatch.buffers) { target.copyMemory(from: $0) }
      let addresses = target.bindMemory(to: UnsafeMutableRawPointer?.self)
      for index in addresses.indices where addresses[index] == nil { addresses[index] = absent }
    }
    let shared = Self.place(dispatch.threadgroupLengths, in: &parameters.threadgroupOffsets)
    parameters.threadgroups = dispatch.threadgroups
    parameters.dispatchThreadsPerThreadgroup = dispatch.threadsPerThreadgroup
    parameters.threadsPerGrid = dispatch.threadsPerGrid
    var launched = 0
    var firstEnd: Double?
    for launch in LaunchShapes(dispatch).launches {
      parameters.firstThreadgroup = launch.first
      parameters.threadsPerThreadgroup = launch.threads
      parameters.isFlat = launch.isFlat ? 1 : 0
      let status = self.launch(kernel, launch, parameters, shared: shared)
      // A fault is that of a kernel before this one.
      try check(status, "cuLaunchKernelEx", CudaStatus.isFault(status) ? running : place)
      launched += 1
      if launched.isMultiple(of: Self.launchesAtOnce) { try endLaunches(of: place, since: &firstEnd) }
    }
  }

  /// Of a dispatch that takes more, those that the time limit looks at together.
  private static let launchesAtOnce = 1024

  /// Waits for the launches so far; a dispatch of many has the time of one from its first ones' end on.
  private func endLaunches(of place: DispatchPlace, since firstEnd: inout Double?) throws(MTLCommandBufferError) {
    try wait(since: firstEnd)
    let now = Processor.time
    if timeLimit > 0, now - (firstEnd ?? now) > timeLimit {
      throw MTLCommandBufferError(.timeout, "kernel '\(place.pipeline.name)' was stopped \(limit)")
    }
    firstEnd = firstEnd ?? now
  }

  private func launch(
    _ kernel: CudaKernel, _ launch: LaunchShapes.Launch, _ parameters: SmGpuDispatch, shared: UInt32
  ) -> CudaDriver.Status {
    let (groups, threads) = (launch.threadgroups, launch.threads)
    let count = threads.0 * threads.1 * threads.2
    var attribute = SmCudaLaunchAttribute()
    attribute.id = UInt32(SM_CUDA_PROGRAMMATIC_SERIALIZATION)
    attribute.value = 1
    return withUnsafePointer(to: attribute) { attribute in
      var configuration = SmCudaLaunch()
      configuration.blocks = groups
      configuration.threads = launch.isFlat ? (count, 1, 1) : threads
      configuration.sharedLength = shared
      configuration.stream = UnsafeMutableRawPointer(stream)
      configuration.attributes = attribute
      configuration.attributeCount = kernel.waits ? 1 : 0
      parameter.set(parameters)
      var arguments: UnsafeMutableRawPointer? = parameter.memory
      return context.perform { driver.launch(&configuration, kernel.function(threads: count), &arguments, nil) }
    }
  }

  /// Lays the arguments in threadgroup memory one behind the other; returns their bytes.
  private static func place<Lengths, Offsets>(_ lengths: Lengths, in offsets: inout Offsets) -> UInt32 {
    var end: UInt32 = 0
    withUnsafeMutableBytes(of: &offsets) { offsets in
      let offsets = offsets.bindMemory(to: UInt32.self)
      withUnsafeBytes(of: lengths) { lengths in
        for (index, length) in lengths.bindMemory(to: UInt32.self).enumerated() {
          offsets[index] = end
          end += (length + 15) & ~15
        }
      }
    }
    return end
  }

  func sample(_ buffer: SoftCounterSampleBuffer, at index: Int) {
    var event: CudaDriver.Pointer?
    let status = context.perform {
      let status = driver.createEvent(&event, 0)
      return status == CudaStatus.success && event != nil ? driver.recordEvent(event ?? stream, stream) : status
    }
    if status == CudaStatus.success, let event { samples.append(Sample(buffer: buffer, index: index, event: event)) }
  }

  func finish() throws(MTLCommandBufferError) -> ClosedRange<Double> {
    try requireContext()
    defer {
      if context.lossReason == nil {
        context.perform { for sample in samples { _ = driver.destroyEvent(sample.event) } }
      }
      samples.removeAll()
    }
    try check(context.perform { driver.recordEvent(end, stream) }, "cuEventRecord", nil)
    try wait()
    let now = Processor.time
    let duration = elapsed(to: end)
    for sample in samples {
      sample.buffer.write(now - duration + elapsed(to: sample.event), at: sample.index)
    }
    return (now - duration)...now
  }

  /// Seconds from the list's begin.
  private func elapsed(to event: CudaDriver.Pointer) -> Double {
    var milliseconds: Float = 0
    let status = context.perform { driver.elapsedTime(&milliseconds, start, event) }
    return status == CudaStatus.success ? max(0, Double(milliseconds) * 1e-3) : 0
  }

  // MARK: Waiting

  /// Seconds that are spent asking before the thread sleeps between two questions.
  private static let pollingTime = 200e-6
  private static let pause: UInt32 = 50
  /// Seconds that threads have from the time limit on until they have ended.
  private static let stopTime = 2.0

  private var begunDispatches: UInt32 { progress.load(as: UInt32.self) }

  /// Ends a kernel that runs for too long; one that goes on all the same loses the device.
  /// - Parameter start: when the time of the dispatch that runs began; now unless given.
  private func wait(since start: Double? = nil) throws(MTLCommandBufferError) {
    let began = Processor.time
    var (begun, lastBegin) = (begunDispatches, start ?? began)
    var stopped: (name: String, time: Double)?
    while true {
      let status = context.perform { driver.queryStream(stream) }
      if status == CudaStatus.success {
        guard let stopped else { return }
        try setStop(0, by: stream)
        throw MTLCommandBufferError(.timeout, "\(stopped.name) was stopped \(limit)")
      }
      let now = Processor.time
      guard status == CudaStatus.notReady else {
        return try check(status, "the GPU", running)
      }
      if begunDispatches != begun { (begun, lastBegin) = (begunDispatches, now) }
      if let stopped {
        if now - stopped.time > Self.stopTime { throw givenUp(stopped.name) }
      } else if timeLimit > 0, now - lastBegin > timeLimit {
        stopped = (running.map { "kernel '\($0.pipeline.name)'" } ?? "the GPU", now)
        try setStop(1, by: stopper)
      }
      if now - began > Self.pollingTime { usleep(Self.pause) } else { sched_yield() }
    }
  }

  /// Of one dispatch the end is the next one's begin. A kernel that writes anywhere may have written the number.
  private var running: DispatchPlace? { places.prefix(Int(begunDispatches)).last ?? places.first }

  private var limit: String { "after \(timeLimit) seconds; SOFTMETAL_TIME_LIMIT sets the limit" }

  private func givenUp(_ name: String) -> MTLCommandBufferError {
    let reason = "\(name) was given up \(limit)"
    context.lose(reason, by: .endlessKernel)
    return MTLCommandBufferError(.timeout, reason)
  }

  private func setStop(_ value: UInt32, by stream: CudaDriver.Pointer) throws(MTLCommandBufferError) {
    let address = UInt64(UInt(bitPattern: stop))
    try check(context.perform { driver.writeValue(stream, address, value, 0) }, "cuStreamWriteValue32", running)
  }

  /// A status that is no success loses the device: the driver has no other end for a context with a fault.
  private func check(
    _ status: CudaDriver.Status, _ call: String, _ place: DispatchPlace?
  ) throws(MTLCommandBufferError) {
    guard status != CudaStatus.success else { return }
    let subject = place.map { "\($0.described): \(call)" } ?? call
    let reason = "\(subject) gave \(driver.describe(status))"
    context.lose(reason, by: CudaStatus.isFault(status) ? .fault : .call)
    throw MTLCommandBufferError(CudaStatus.code(of: status), reason)
  }
}
