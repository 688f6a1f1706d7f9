import CSoftMetal

/// The arguments that an encoder has set, by index.
final class ArgumentTable {
  struct Binding {
    /// 0: nothing is bound.
    var address: UInt
    /// Bytes from the address to the end of what is bound.
    var length: Int

    /// Whether it is what a kernel asks of an argument.
    @inline(__always)
    func serves(_ argument: KernelArgument) -> Bool {
      length >= argument.minimumLength && address & UInt(argument.alignment - 1) == 0
        && (address != 0 || argument.minimumLength == 0)
    }
  }

  static let indices = 0..<Int(SM_MAX_BUFFERS)
  /// Bytes, of variables and arguments together.
  static let maxThreadgroupMemoryLength = Int(SM_MAX_THREADGROUP_MEMORY)

  let buffers = UnsafeMutablePointer<Binding>.allocate(capacity: ArgumentTable.indices.count)
  let threadgroupLengths = UnsafeMutablePointer<Int>.allocate(capacity: ArgumentTable.indices.count)

  init() {
    buffers.initialize(repeating: Binding(address: 0, length: 0), count: Self.indices.count)
    threadgroupLengths.initialize(repeating: 0, count: Self.indices.count)
  }

  deinit {
    buffers.deallocate()
    threadgroupLengths.deallocate()
  }

  static func check(index: Int, _ call: StaticString) throws(MTLCommandBufferError) {
    guard indices ~= index else {
      throw MTLCommandBufferError(.internal, "\(call): index is \(index); expected 0 to \(indices.upperBound - 1)")
    }
  }

  /// Appends the arguments of a kernel, all of them checked before the first: addresses of its buffers, then lengths of
  /// its threadgroup memory.
  func append(
    for pipeline: SoftComputePipelineState, to arguments: inout ContiguousArray<UInt>
  ) throws(MTLCommandBufferError) {
    for argument in pipeline.buffers where !buffers[argument.index].serves(argument) {
      throw refusal(of: argument, buffers[argument.index], kernel: pipeline.name)
    }
    if !pipeline.threadgroupMemory.isEmpty { try checkThreadgroupMemory(of: pipeline) }
    var end = arguments.count
    arguments.append(
      contentsOf: repeatElement(0, count: pipeline.buffers.count + pipeline.threadgroupMemory.count))
    arguments.withUnsafeMutableBufferPointer { arguments in
      for argument in pipeline.buffers {
        arguments[end] = buffers[argument.index].address
        end += 1
      }
      for argument in pipeline.threadgroupMemory {
        arguments[end] = UInt(threadgroupLengths[argument.index])
        end += 1
      }
    }
  }

  private func checkThreadgroupMemory(of pipeline: SoftComputePipelineState) throws(MTLCommandBufferError) {
    var total = pipeline.staticThreadgroupMemoryLength
    for argument in pipeline.threadgroupMemory {
      let length = threadgroupLengths[argument.index]
      guard length >= max(1, argument.minimumLength) else {
        throw MTLCommandBufferError(
          .internal,
          "kernel '\(pipeline.name)': threadgroup(\(argument.index)) has \(length) bytes; "
            + "the kernel needs at least \(max(1, argument.minimumLength)): call setThreadgroupMemoryLength")
      }
      total += length
    }
    guard total <= Self.maxThreadgroupMemoryLength else {
      let staticLength = pipeline.staticThreadgroupMemoryLength
      throw MTLCommandBufferError(
        .internal,
        "kernel '\(pipeline.name)': \(staticLength) bytes of threadgroup variables and \(total - staticLength) bytes "
          + "of threadgroup arguments are more than \(Self.maxThreadgroupMemoryLength)")
    }
  }

  private func refusal(of argument: KernelArgument, _ binding: Binding, kernel: String) -> MTLCommandBufferError {
    let name = "kernel '\(kernel)': buffer(\(argument.index))"
    if binding.address == 0 {
      return MTLCommandBufferError(.invalidResource, "\(name) is not bound: call setBuffer or setBytes")
    }
    if binding.length < argument.minimumLength {
      return MTLCommandBufferError(
        .invalidResource,
        "\(name) has \(binding.length) bytes from its offset on; the kernel needs at least \(argument.minimumLength)")
    }
    return MTLCommandBufferError(
      .invalidResource,
      "\(name) is bound at an offset that is no multiple of \(argument.alignment) bytes, the alignment of its type")
  }
}
