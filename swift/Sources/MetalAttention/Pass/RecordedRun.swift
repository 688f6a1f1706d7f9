import CMetalAttention

/// What a run of a recorded pass gives.
struct RunValues {
  let scalars: [UInt32]
  /// By replaceable tensor; nil where it is the recorded one.
  let tensors: [MATensor?]

  /// Reads and checks what the caller gives for `recording`.
  init(_ run: MARun, for recording: Recording, in device: Device) throws(StatusError) {
    let (scalarCount, tensorCount) = (recording.scalars.count, recording.replaceables.count)
    try require(
      Int(run.scalarCount) == scalarCount, StatusCode.invalidArgument,
      "\(arg: "scalarCount") is \(run.scalarCount); the pass was recorded with \(scalarCount)")
    try require(
      Int(run.tensorCount) == tensorCount, StatusCode.invalidArgument,
      "\(arg: "tensorCount") is \(run.tensorCount); the pass was recorded with \(tensorCount)")
    var (scalars, tensors): ([UInt32], [MATensor?]) = ([], [])
    if scalarCount > 0 {
      let list = UnsafeRawPointer(try unwrap(run.scalars, "scalars"))
      for (position, scalar) in recording.scalars.enumerated() {
        let value = list.loadUnaligned(fromByteOffset: 4 * position, as: UInt32.self)
        try require(
          scalar.range.contains(value), StatusCode.invalidArgument,
          "\(Argument(scalar.name)) is \(value); it was declared as \(scalar.range.lowerBound) to \(scalar.range.upperBound)"
        )
        scalars.append(value)
      }
    }
    if tensorCount > 0 {
      let list = UnsafeRawPointer(try unwrap(run.tensors, "tensors"))
      for (position, replaceable) in recording.replaceables.enumerated() {
        let tensor = list.loadUnaligned(
          fromByteOffset: MemoryLayout<MATensor>.stride * position, as: MATensor.self)
        tensors.append(Tensor.isPresent(tensor) ? try Self.check(tensor, replaceable, device) : nil)
      }
    }
    self.scalars = scalars
    self.tensors = tensors
  }

  private static func check(
    _ tensor: MATensor, _ replaceable: Recording.Replaceable, _ device: Device
  ) throws(StatusError) -> MATensor {
    let name = Argument(replaceable.name)
    let recorded = replaceable.tensor
    let buffer = try HandleSpace.buffers.resolveUncounted(tensor.buffer, name)
    try require(
      tensor.dtype == recorded.dtype, StatusCode.invalidArgument,
      "\(name): dtype is \(tensor.dtype), but \(recorded.dtype) where it was recorded")
    try require(
      tensor.length == recorded.length, StatusCode.invalidArgument,
      "\(name): has \(tensor.length) bytes, but \(recorded.length) where it was recorded")
    _ = try buffer.requireRange(tensor.offset, tensor.length, of: ObjectIdentifier(device), name)
    return tensor
  }
}

extension Recording {
  /// Encodes all that is recorded, as `recorded` holds it, into `pass`. Where a
  /// pipeline is missing it is returned, and `pass` is of no use any more; nor is
  /// it after a refusal.
  func encode(into pass: Pass, as recorded: Pass, _ values: RunValues) throws(StatusError) -> PipelineSlot? {
    if !operations.contains(where: { $0.isCheckedAgain(with: values) }) {
      try replay(into: pass)
      pass.replayed = recorded
      return nil
    }
    for (number, operation) in operations.enumerated() {
      do throws(StatusError) {
        if operation.isCheckedAgain(with: values) {
          if let slot = try encode(operation, into: pass, values) { return slot }
        } else {
          for dispatch in operation.dispatches { try encode(dispatches[dispatch], into: pass) }
        }
      } catch {
        throw error.of(operation, number)
      }
    }
    return nil
  }

  /// Encodes all dispatches as they were recorded, with the barriers that they
  /// had. What the pass holds is looked up in the recording.
  private func replay(into pass: Pass) throws(StatusError) {
    guard let encoder = pass.encoder else { return }
    let (dispatches, bindings, bytes, accesses) = (dispatches, bindings, bytes, accesses)
    let tileClasses = pass.device.tileClasses
    var selected: UnsafeMutableRawPointer?
    for number in dispatches.indices {
      let dispatch = dispatches[number]
      let pipeline = dispatch.pipeline.toOpaque()
      if pipeline != selected {
        dispatch.pipeline._withUnsafeGuaranteedRef { encoder.setComputePipelineState($0.state) }
        selected = pipeline
      }
      for position in dispatch.bindings {
        let (index, binding) = bindings[position]
        switch binding {
        case .buffer(let reference, let offset):
          let isOpen = reference._withUnsafeGuaranteedRef { buffer in
            if buffer.isOpen { encoder.setBuffer(buffer.metal, offset: Int(offset), index: index) }
            return buffer.isOpen
          }
          if !isOpen { throw Self.released.of(operations, dispatch: number) }
        case .bytes(let range):
          bytes.withUnsafeBytes { bytes in
            guard let address = bytes.baseAddress else { return }
            encoder.setBytes(address + range.lowerBound, length: range.count, index: index)
          }
        case .threadgroup(let length):
          encoder.setThreadgroupMemoryLength(length, index: index)
        case .use(let reference, let isWritten):
          let isOpen = reference._withUnsafeGuaranteedRef { buffer in
            if buffer.isOpen { encoder.useResource(buffer.metal, usage: isWritten ? [.read, .write] : .read) }
            return buffer.isOpen
          }
          if !isOpen { throw Self.released.of(operations, dispatch: number) }
        }
      }
      if !tileClasses.entries.isEmpty {
        for access in accesses[dispatch.accesses] where access.isWrite { tileClasses.noteWrite(access, in: pass) }
      }
      if dispatch.needsBarrier { encoder.memoryBarrier(scope: .buffers) }
      switch dispatch.form {
      case .threadgroups:
        encoder.dispatchThreadgroups(dispatch.grid.metal, threadsPerThreadgroup: dispatch.threads.metal)
      case .threads: encoder.dispatchThreads(dispatch.grid.metal, threadsPerThreadgroup: dispatch.threads.metal)
      }
    }
  }

  private static let released = StatusError(
    StatusCode.invalidHandle, "the buffer of a tensor was released; record the pass anew")

  /// Checks and encodes an operation anew, with the values of this run.
  private func encode(
    _ operation: RecordedOperation, into pass: Pass, _ values: RunValues
  ) throws(StatusError) -> PipelineSlot? {
    let arguments = operation.arguments
    for (offset, scalar) in operation.scalars { arguments.set(values.scalars[scalar], at: offset) }
    for (place, replaceable) in operation.tensors {
      let recorded = replaceables[replaceable].tensor
      let tensor = values.tensors[replaceable] ?? recorded
      arguments.set(place, buffer: tensor.buffer, offset: place.offset - recorded.offset + tensor.offset)
    }
    guard let address = arguments.memory.baseAddress else { return nil }
    return try operation.encode(UnsafeRawPointer(address), pass)
  }

  /// Encodes a dispatch as it was recorded.
  private func encode(_ dispatch: RecordedDispatch, into pass: Pass) throws(StatusError) {
    let pipeline = dispatch.pipeline.takeUnretainedValue()
    if dispatch.operation == .kernel { pass.keep(pipeline) }
    let encoder = pass.use(pipeline)
    for position in dispatch.bindings {
      let (index, binding) = bindings[position]
      switch binding {
      case .buffer(let reference, let offset):
        if !reference._withUnsafeGuaranteedRef(\.isOpen) { throw Self.released }
        encoder.bind(reference, offset: offset, at: index)
      case .bytes(let range):
        bytes.withUnsafeBytes { encoder.bind(UnsafeRawBufferPointer(rebasing: $0[range]), at: index) }
      case .threadgroup(let length):
        encoder.setThreadgroupMemory(length: length, at: index)
      case .use(let reference, let isWritten):
        if !reference._withUnsafeGuaranteedRef(\.isOpen) { throw Self.released }
        encoder.use(reference, isWritten: isWritten)
      }
    }
    for position in dispatch.accesses { encoder.note(accesses[position]) }
    encoder.dispatch(dispatch.operation, dispatch.form, grid: dispatch.grid, threads: dispatch.threads)
  }
}

extension Recording.RecordedOperation {
  /// Whether a run has to check and encode it anew.
  fileprivate func isCheckedAgain(with values: RunValues) -> Bool {
    isAlwaysChecked || !scalars.isEmpty || tensors.contains { values.tensors[$0.replaceable] != nil }
  }
}

extension StatusError {
  /// The refusal of operation `number` of a recorded pass, by the names of its arguments.
  fileprivate func of(_ operation: Recording.RecordedOperation, _ number: Int) -> StatusError {
    let function = "\(operation.function)"
    let message = message.renamed { ArgumentNames.name($0, of: function, withV: operation.withV) }
    return StatusError(code, "operation \(number) (\(function)): \(message)")
  }

  fileprivate func of(
    _ operations: ContiguousArray<Recording.RecordedOperation>, dispatch: Int
  ) -> StatusError {
    for (number, operation) in operations.enumerated() where operation.dispatches.contains(dispatch) {
      return of(operation, number)
    }
    return self
  }
}

extension Device {
  /// Encodes a recorded pass into a new one, commits that, and gives its handle.
  func run(_ recorded: UInt32, _ run: MARun) throws(StatusError) -> UInt32 {
    while true {
      let isConcurrent = try HandleSpace.lock.withLock { () throws(StatusError) in
        try HandleSpace.passes.resolveRecording(recorded).pass.isConcurrent
      }
      let handle = try openPass(concurrent: isConcurrent)
      do throws(StatusError) {
        guard let slot = try encodeRun(of: recorded, run, into: handle) else { return handle }
        abandon(handle)
        try registry.prepare(slot)
      } catch {
        abandon(handle)
        throw error
      }
    }
  }

  private func encodeRun(of recorded: UInt32, _ run: MARun, into handle: UInt32) throws(StatusError) -> PipelineSlot? {
    try HandleSpace.lock.withLock { () throws(StatusError) in
      let (recorded, recording) = try HandleSpace.passes.resolveRecording(recorded)
      let pass = try HandleSpace.passes.resolve(handle, "pass")
      let values = try RunValues(run, for: recording, in: self)
      // Encoding notes what is written; a refusal has no effect.
      let noted = tileClasses.notes
      do throws(StatusError) {
        if let slot = try recording.encode(into: pass, as: recorded, values) {
          tileClasses.restore(noted)
          return slot
        }
        try pass.commit(notifies: run.notify == 1)
        return nil
      } catch {
        tileClasses.restore(noted)
        throw error
      }
    }
  }

  private func abandon(_ handle: UInt32) {
    HandleSpace.lock.withLock { HandleSpace.passes.remove(handle)?.abandon() }
  }
}

extension HandleTable<Pass> {
  /// The caller holds the lock.
  func resolveRecording(_ handle: UInt32) throws(StatusError) -> (pass: Pass, recording: Recording) {
    let pass = try resolve(handle, "pass")
    guard let recording = pass.recording else {
      throw StatusError(
        StatusCode.invalidState, "\(arg: "pass"): it is not recorded; create it with mode 2 (recorded)")
    }
    return (pass, recording)
  }
}
