import CSoftMetal

/// An argument of a kernel as the compiled object describes it.
class SoftBinding: MTLBinding {
  let name: String
  let type: MTLBindingType
  let access: MTLBindingAccess
  let index: Int
  let isArgument = true
  /// Bytes that must be bound at least; 0 where the kernel does not use it.
  let minimumLength: Int
  /// Bytes.
  let alignment: Int

  var isUsed: Bool { minimumLength > 0 }

  init(_ argument: SmArgument, type: MTLBindingType, name: String) {
    self.name = name
    self.type = type
    access = Int(argument.access) == SM_ACCESS_READ ? .readOnly : .readWrite
    index = Int(argument.index)
    minimumLength = Int(clamping: argument.minimumLength)
    alignment = max(1, Int(argument.alignment))
  }

  static func make(_ argument: SmArgument, name: String) -> SoftBinding {
    Int(argument.kind) == SM_ARGUMENT_BUFFER
      ? SoftBufferBinding(argument, type: .buffer, name: name)
      : SoftThreadgroupBinding(argument, type: .threadgroupMemory, name: name)
  }
}

private final class SoftBufferBinding: SoftBinding, MTLBufferBinding {
  var bufferAlignment: Int { alignment }
  var bufferDataSize: Int { minimumLength }
}

private final class SoftThreadgroupBinding: SoftBinding, MTLThreadgroupBinding {
  var threadgroupMemoryAlignment: Int { alignment }
  var threadgroupMemoryDataSize: Int { minimumLength }
}
