/// An argument of a pipeline's function.
public protocol MTLBinding: AnyObject {
  /// As the source names it.
  var name: String { get }
  var type: MTLBindingType { get }
  var access: MTLBindingAccess { get }

  /// Of `[[buffer(index)]]` or `[[threadgroup(index)]]`.
  var index: Int { get }

  /// Whether the function's code refers to it.
  var isUsed: Bool { get }

  /// Whether the caller has to bind it, unlike a `threadgroup` variable.
  var isArgument: Bool { get }
}

/// An argument in `device` or `constant` memory.
public protocol MTLBufferBinding: MTLBinding {
  /// Bytes.
  var bufferAlignment: Int { get }

  /// Bytes of what a reference refers to, or of one element of a pointer.
  var bufferDataSize: Int { get }
}

/// An argument in `threadgroup` memory.
public protocol MTLThreadgroupBinding: MTLBinding {
  /// Bytes.
  var threadgroupMemoryAlignment: Int { get }

  /// Bytes of what a reference refers to, or of one element of a pointer.
  var threadgroupMemoryDataSize: Int { get }
}
