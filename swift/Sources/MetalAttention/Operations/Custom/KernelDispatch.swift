import CMetalAttention

/// `ma_encode_kernel`: any pipeline with arguments given by the caller.
enum KernelDispatch {
  /// Two argument tables of 31 places, buffers with bytes and threadgroup memory; and what is reached by an address.
  static let maxBindings = 62 + KernelBinding.maxUses

  /// The bindings of the dispatch that is being encoded; guarded by the lock of
  /// `HandleSpace`.
  private nonisolated(unsafe) static let scratch = UnsafeMutablePointer<KernelBinding>.allocate(
    capacity: Int(maxBindings))

  @inline(__always)
  static func encode(_ dispatch: MAKernelDispatch, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let pipeline = try HandleSpace.pipelines.resolve(dispatch.pipeline, "pipeline")
    try require(
      pipeline.registry == ObjectIdentifier(pass.device.registry), StatusCode.invalidHandle,
      "\(arg: "pipeline"): it belongs to another device than the pass")
    guard let form = DispatchForm(rawValue: dispatch.form) else {
      throw StatusError(
        StatusCode.invalidArgument, "\(arg: "form") is \(dispatch.form); it is 0 (threadgroups) or 1 (threads)")
    }
    let grid = GridSize(dispatch.grid.0, dispatch.grid.1, dispatch.grid.2)
    let threads = GridSize(
      dispatch.threadsPerThreadgroup.0, dispatch.threadsPerThreadgroup.1, dispatch.threadsPerThreadgroup.2)
    try requireSizes(form, grid, threads, pipeline, pass.device)
    let bindings = try bindings(of: dispatch, in: pass)
    try requireArguments(bindings, pipeline, pass.device)

    pass.keep(pipeline)
    let encoder = pass.use(pipeline)
    for binding in bindings {
      switch binding {
      case .buffer(let buffer, let access, let index):
        encoder.bind(buffer, offset: access.start, at: index)
        encoder.note(access)
      case .bytes(let bytes, let index):
        encoder.bind(bytes, at: index)
      case .threadgroup(let length, let index):
        encoder.setThreadgroupMemory(length: length, at: index)
      case .use(let buffer, let access, _):
        encoder.use(buffer, isWritten: access.isWrite)
        encoder.note(access)
      }
    }
    encoder.dispatch(.kernel, form, grid: grid, threads: threads)
    return nil
  }

  @inline(__always)
  private static func requireSizes(
    _ form: DispatchForm, _ grid: GridSize, _ threads: GridSize, _ pipeline: Pipeline, _ device: Device
  ) throws(StatusError) {
    try require(
      grid.x > 0 && grid.y > 0 && grid.z > 0, StatusCode.invalidArgument,
      "\(arg: "grid") is \(grid); every dimension is at least 1")
    try require(
      threads.x > 0 && threads.y > 0 && threads.z > 0, StatusCode.invalidArgument,
      "\(arg: "threadsPerThreadgroup") is \(threads); every dimension is at least 1")
    let most = device.maxThreadsPerThreadgroup
    try require(
      Int(threads.x) <= most.width && Int(threads.y) <= most.height && Int(threads.z) <= most.depth,
      StatusCode.invalidArgument,
      "\(arg: "threadsPerThreadgroup") is \(threads); this device allows \(most.width) x \(most.height) x \(most.depth)"
    )
    let total = threads.count
    try require(
      !total.overflowed && total.value <= UInt64(pipeline.maxTotalThreadsPerThreadgroup), StatusCode.invalidArgument,
      "\(arg: "threadsPerThreadgroup") is \(threads); \(pipeline.kernel) allows \(pipeline.maxTotalThreadsPerThreadgroup) in all"
    )
    guard form == .threadgroups else { return }
    // A kernel sees thread positions in 32 bits.
    for (count, size) in [(grid.x, threads.x), (grid.y, threads.y), (grid.z, threads.z)] {
      try require(
        !count.multipliedReportingOverflow(by: size).overflow, StatusCode.overflow,
        "\(arg: "grid") \(grid) x \(arg: "threadsPerThreadgroup") \(threads) exceeds 2^32 threads along a dimension")
    }
  }

  /// Reads the caller's bindings, each once.
  @inline(__always)
  private static func bindings(
    of dispatch: MAKernelDispatch, in pass: Pass
  ) throws(StatusError) -> UnsafeBufferPointer<KernelBinding> {
    try require(
      dispatch.bindingCount <= maxBindings, StatusCode.invalidArgument,
      "\(arg: "bindingCount") is \(dispatch.bindingCount); it is at most \(maxBindings)")
    let count = Int(dispatch.bindingCount)
    let bindings = UnsafeBufferPointer(start: scratch, count: count)
    if count == 0 { return bindings }
    let list = UnsafeRawPointer(try unwrap(dispatch.bindings, "bindings"))
    for position in 0..<count {
      let binding = list.loadUnaligned(
        fromByteOffset: position * MemoryLayout<MABinding>.stride, as: MABinding.self)
      scratch[position] = try KernelBinding(binding, position: position, in: pass)
    }
    return bindings
  }

  /// Checks the arguments as a set.
  @inline(__always)
  private static func requireArguments(
    _ bindings: UnsafeBufferPointer<KernelBinding>, _ pipeline: Pipeline, _ device: Device
  ) throws(StatusError) {
    var arguments: UInt32 = 0
    var threadgroups: UInt32 = 0
    var memory = Count(pipeline.staticThreadgroupMemoryLength)
    for position in bindings.indices {
      let binding = bindings[position]
      let isNew: Bool
      switch binding {
      case .buffer(_, _, let index), .bytes(_, let index): isNew = take(index, from: &arguments)
      case .threadgroup(let length, let index):
        isNew = take(index, from: &threadgroups)
        memory = memory + UInt64(length)
      case .use: continue
      }
      try require(isNew, StatusCode.invalidArgument, "\(binding.argument(at: position)): its index is bound twice")
      try SignatureCheck.requireFit(binding, binding.argument(at: position), of: pipeline)
    }
    try SignatureCheck.requireComplete(buffers: arguments, threadgroups: threadgroups, of: pipeline)
    try require(
      !memory.overflowed && memory.value <= UInt64(device.maxThreadgroupMemoryLength), StatusCode.invalidArgument,
      "threadgroup memory is \(memory.value) bytes, \(pipeline.staticThreadgroupMemoryLength) of them in the kernel; "
        + "this device allows \(device.maxThreadgroupMemoryLength)")
  }

  @inline(__always)
  private static func take(_ index: Int, from used: inout UInt32) -> Bool {
    let bit: UInt32 = 1 << UInt32(index)
    defer { used |= bit }
    return used & bit == 0
  }
}
