import CSoftMetal

/// The arguments that an encoder has set, by index.
final class ArgumentTable {
  struct Binding {
    /// 0: nothing is bound.
    var address: UInt
    /// Bytes from the address to the end of what is bound.
    var length: Int
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

  /// Appends the arguments of a kernel after checking each: addresses of its
  /// buffers, then lengths of its threadgroup memory.
  func append(
    for pipeline: SoftComputePipelineState, to arguments: inout ContiguousArray<UInt>
  ) throws(MTLCommandBufferError) {
    let first = arguments.count
    for argument in pipeline.buffers {
      let binding = buffers[argument.index]
      guard binding.length >= argument.minimumLength, binding.address % UInt(argument.alignment) == 0,
        binding.address != 0 || argument.minimumLength == 0
      else {
        arguments.removeSubrange(first...)
        throw refusal(of: argument, binding, kernel: pipeline.name)
      }
      arguments.append(binding.address)
    }
    guard !pipeline.threadgroupMemory.isEmpty else { return }
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
      arguments.append(UInt(length))
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
