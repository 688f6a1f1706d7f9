/// What the caller of a kernel has to bind, read once from the reflection of
/// its pipeline. An argument that a function constant removes is not part of it.
struct KernelSignature {
  /// The arguments of one kind. A set has a bit for each index, and a dispatch
  /// is checked without touching a reference.
  struct Table {
    struct Limit {
      var minimumLength: UInt64 = 0
      var alignment: UInt64 = 1
    }

    fileprivate(set) var present: UInt32 = 0
    fileprivate(set) var required: UInt32 = 0
    fileprivate(set) var writable: UInt32 = 0
    /// By index.
    fileprivate(set) var limits = ContiguousArray(repeating: Limit(), count: Int(KernelBinding.maxIndex) + 1)

    fileprivate mutating func add(_ argument: KernelArgument) {
      let bit: UInt32 = 1 << UInt32(argument.index)
      present |= bit
      if argument.isUsed { required |= bit }
      if argument.isWritable { writable |= bit }
      limits[argument.index] = Limit(minimumLength: argument.minimumLength, alignment: argument.alignment)
    }
  }

  private(set) var buffers = Table()
  private(set) var threadgroups = Table()
  /// For messages, in the order of the shader.
  private var arguments: [KernelArgument] = []
  /// An argument of another kind, such as a texture, which no caller can bind.
  private(set) var unbindable: String?

  init(_ bindings: [any MTLBinding]) {
    for binding in bindings {
      guard let argument = KernelArgument(binding) else {
        if binding.isArgument, binding.isUsed { unbindable = binding.name }
        continue
      }
      arguments.append(argument)
      switch argument.kind {
      case .buffer: buffers.add(argument)
      case .threadgroup: threadgroups.add(argument)
      }
    }
  }

  func argument(_ kind: KernelArgument.Kind, _ index: Int) -> KernelArgument? {
    arguments.first { $0.kind == kind && $0.index == index }
  }

  /// An argument that has to be bound and is not; a bit for each index that is.
  @inline(__always)
  func missing(buffers boundBuffers: UInt32, threadgroups boundThreadgroups: UInt32) -> KernelArgument? {
    if buffers.required & ~boundBuffers == 0, threadgroups.required & ~boundThreadgroups == 0 { return nil }
    return arguments.first { argument in
      let bound = argument.kind == .buffer ? boundBuffers : boundThreadgroups
      return argument.isUsed && bound >> UInt32(argument.index) & 1 == 0
    }
  }

  /// The arguments as a message lists them.
  var list: String {
    arguments.isEmpty ? "none" : arguments.map { "\($0.place) \($0.name)" }.joined(separator: ", ")
  }
}
