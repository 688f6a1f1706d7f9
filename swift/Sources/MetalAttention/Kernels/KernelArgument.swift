/// An argument that a caller binds to a kernel.
struct KernelArgument {
  enum Kind: String {
    case buffer, threadgroup
  }

  let kind: Kind
  /// Of `[[buffer(index)]]` or `[[threadgroup(index)]]`.
  let index: Int
  /// As the shader names it.
  let name: String
  /// Whether the kernel's code refers to it, so that it has to be bound.
  let isUsed: Bool
  /// Whether the kernel uses it and its type allows writing: it is neither `constant` nor const.
  let isWritable: Bool
  /// Bytes of what a reference refers to, or of one element of a pointer.
  let minimumLength: UInt64
  /// Bytes, a power of two.
  let alignment: UInt64

  /// Nil for what a caller does not bind, such as a `threadgroup` variable, or
  /// cannot.
  init?(_ binding: any MTLBinding) {
    guard binding.isArgument, 0...Int(KernelBinding.maxIndex) ~= binding.index else { return nil }
    if let buffer = binding as? any MTLBufferBinding {
      kind = .buffer
      minimumLength = UInt64(clamping: buffer.bufferDataSize)
      alignment = UInt64(clamping: max(1, buffer.bufferAlignment))
    } else if let memory = binding as? any MTLThreadgroupBinding {
      kind = .threadgroup
      minimumLength = UInt64(clamping: memory.threadgroupMemoryDataSize)
      alignment = UInt64(clamping: max(1, memory.threadgroupMemoryAlignment))
    } else {
      return nil
    }
    index = binding.index
    name = binding.name
    isUsed = binding.isUsed
    isWritable = binding.isUsed && binding.access != .readOnly
  }

  /// The name of a missing argument.
  var placeInCall: Argument {
    switch kind {
    case .buffer: .binding(kind: "buffer", index: index, position: nil)
    case .threadgroup: .binding(kind: "threadgroup", index: index, position: nil)
    }
  }

  /// As the shader declares it, for messages.
  var place: String { "\(kind.rawValue)(\(index))" }
}
