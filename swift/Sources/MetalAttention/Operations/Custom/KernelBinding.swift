import CMetalAttention

/// An argument of a generic dispatch, checked.
enum KernelBinding {
  /// Kept alive by the lock under which it is encoded.
  case buffer(Unmanaged<Buffer>, Access, index: Int)
  case bytes(UnsafeRawBufferPointer, index: Int)
  case threadgroup(length: Int, index: Int)
  /// What the kernel reaches by an address in other memory. Kept alive as a buffer is.
  case use(Unmanaged<Buffer>, Access, index: Int)

  static let maxIndex: UInt32 = 30
  static let maxUses: UInt32 = 512
  static let maxBytes: UInt64 = 4096

  /// The argument at `position` of the caller's list, for messages.
  func argument(at position: Int) -> Argument {
    switch self {
    case .buffer(_, _, let index): .binding(kind: "buffer", index: index, position: position)
    case .bytes(_, let index): .binding(kind: "bytes", index: index, position: position)
    case .threadgroup(_, let index): .binding(kind: "threadgroup", index: index, position: position)
    case .use(_, _, let index): .binding(kind: "use", index: index, position: position)
    }
  }

  /// - Parameter position: place in the caller's list, for messages.
  @inline(__always)
  init(_ binding: MABinding, position: Int, in pass: Pass) throws(StatusError) {
    let kind = BindingKind(rawValue: binding.kind)
    let maxIndex = kind == .use ? Self.maxUses - 1 : Self.maxIndex
    try require(
      binding.index <= maxIndex, StatusCode.invalidArgument,
      "\(Argument("bindings[\(position)]")): index is \(binding.index); it is at most \(maxIndex)")
    let index = Int(binding.index)
    switch kind {
    case .buffer:
      let (buffer, access) = try Self.range(
        binding, .binding(kind: "buffer", index: index, position: position), in: pass)
      self = .buffer(buffer, access, index: index)
    case .use:
      let (buffer, access) = try Self.range(
        binding, .binding(kind: "use", index: index, position: position), in: pass)
      self = .use(buffer, access, index: index)
    case .bytes: self = try Self.bytes(binding, .binding(kind: "bytes", index: index, position: position))
    case .threadgroup:
      self = try Self.threadgroup(binding, .binding(kind: "threadgroup", index: index, position: position))
    case nil:
      throw StatusError(
        StatusCode.invalidArgument,
        "\(Argument("bindings[\(position)]")): kind is \(binding.kind); it is 0 (buffer), 1 (bytes), 2 (threadgroup) or 3 (use)"
      )
    }
  }

  @inline(__always)
  private static func range(
    _ binding: MABinding, _ argument: @autoclosure () -> Argument, in pass: Pass
  ) throws(StatusError) -> (Unmanaged<Buffer>, Access) {
    guard let buffer = HandleSpace.buffers.find(binding.buffer) else {
      throw StatusError(
        StatusCode.invalidHandle,
        "\(argument()): \(binding.buffer) is not the handle of an open buffer; it may have been released")
    }
    let readWrite = UInt32(MA_ACCESS_READ | MA_ACCESS_WRITE)
    try require(
      binding.access != 0 && binding.access & ~readWrite == 0, StatusCode.invalidArgument,
      "\(argument()): access is \(binding.access); it is 1 (read), 2 (write) or 3 (both)")
    try require(binding.length > 0, StatusCode.invalidArgument, "\(argument()): length is 0; bind at least 1 byte")
    let end = try buffer.requireRange(binding.offset, binding.length, of: pass.deviceIdentity, argument())
    // Read-write access is ordered as a write.
    let isWrite = binding.access & UInt32(MA_ACCESS_WRITE) != 0
    let access = Access(buffer: binding.buffer, isWrite: isWrite, start: binding.offset, end: end)
    return (buffer, access)
  }

  @inline(__always)
  private static func bytes(_ binding: MABinding, _ argument: @autoclosure () -> Argument) throws(StatusError)
    -> KernelBinding
  {
    guard let bytes = binding.bytes else {
      throw StatusError(StatusCode.invalidArgument, "\(argument()): bytes is NULL")
    }
    try require(
      binding.length > 0 && binding.length <= maxBytes, StatusCode.invalidArgument,
      "\(argument()): length is \(binding.length) bytes; it is 1 to \(maxBytes)")
    return .bytes(UnsafeRawBufferPointer(start: bytes, count: Int(binding.length)), index: Int(binding.index))
  }

  @inline(__always)
  private static func threadgroup(_ binding: MABinding, _ argument: @autoclosure () -> Argument) throws(StatusError)
    -> KernelBinding
  {
    try require(
      binding.length > 0 && binding.length % 16 == 0, StatusCode.invalidArgument,
      "\(argument()): length is \(binding.length) bytes; threadgroup memory is a positive multiple of 16")
    guard let length = Int(exactly: binding.length) else {
      throw StatusError(StatusCode.overflow, "\(argument()): length \(binding.length) leaves 63 bits")
    }
    return .threadgroup(length: length, index: Int(binding.index))
  }
}
