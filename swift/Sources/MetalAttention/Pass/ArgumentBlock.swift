import CMetalAttention

/// A copy of an operation's arguments, at an address that stays, in which a run
/// of a recorded pass changes scalars and tensors. Guarded by the lock of
/// `HandleSpace`.
final class ArgumentBlock {
  /// Where a tensor stands in the arguments.
  struct TensorPlace {
    /// Bytes from the start to its handle, and to its offset in the buffer.
    let handleAt: Int
    let offsetAt: Int
    /// As recorded.
    let buffer: UInt32
    let offset: UInt64
    let length: UInt64
  }

  let memory: UnsafeMutableRawBufferPointer
  let tensors: [TensorPlace]
  /// Offsets of 32-bit integers by their C names.
  private let scalars: [(name: String, offset: Int)]

  deinit {
    memory.deallocate()
  }

  /// The arguments of an operation, as the layout of their struct tells, with the lists of floats that they lead to: the
  /// caller's are his again once the operation is recorded. A list too long for any operation stays the caller's.
  init<Args: BitwiseCopyable>(_ args: Args) throws(StatusError) {
    let fields = try StructFields(of: "\(Args.self)")
    let lists = withUnsafeBytes(of: args) { bytes in
      fields.lists.map { at -> UnsafeRawBufferPointer in
        let count = bytes.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self)
        let isShort = count <= KernelBinding.maxBytes / UInt64(MemoryLayout<Float>.size)
        let start = UnsafeRawPointer(bitPattern: bytes.loadUnaligned(fromByteOffset: at, as: UInt.self))
        return UnsafeRawBufferPointer(
          start: start, count: isShort && start != nil ? Int(count) * MemoryLayout<Float>.size : 0)
      }
    }
    let head = (MemoryLayout<Args>.size + 15) & ~15
    let copy = UnsafeMutableRawBufferPointer.allocate(
      byteCount: head + lists.reduce(0) { $0 + $1.count }, alignment: 16)
    withUnsafeBytes(of: args) { copy.copyMemory(from: $0) }
    var end = head
    for (at, list) in zip(fields.lists, lists) where !list.isEmpty {
      let place = UnsafeMutableRawBufferPointer(rebasing: copy[end..<(end + list.count)])
      place.copyMemory(from: list)
      copy.storeBytes(of: UnsafeRawPointer(place.baseAddress), toByteOffset: at, as: UnsafeRawPointer?.self)
      end += list.count
    }
    memory = copy
    scalars = fields.scalars
    tensors = fields.tensors.map { offset in
      TensorPlace(copy, handleAt: offset, offsetAt: offset + 8, lengthAt: offset + 16)
    }
  }

  /// A dispatch of any kernel, with what its arguments lead to; of one that
  /// will be refused for its counts, without.
  init(_ dispatch: MAKernelDispatch) {
    let head = MemoryLayout<MAKernelDispatch>.size
    let stride = MemoryLayout<MABinding>.stride
    let count = dispatch.bindingCount <= KernelDispatch.maxBindings ? Int(dispatch.bindingCount) : 0
    let list = (0..<count).compactMap { position in
      dispatch.bindings.map {
        UnsafeRawPointer($0).loadUnaligned(fromByteOffset: position * stride, as: MABinding.self)
      }
    }
    // Each piece of bytes begins at a multiple of 16.
    let lengths = list.map { binding in
      let hasBytes = binding.kind == BindingKind.bytes.rawValue && binding.length <= KernelBinding.maxBytes
      return hasBytes ? (Int(binding.length) + 15) & ~15 : 0
    }
    memory = .allocate(byteCount: head + list.count * stride + lengths.reduce(0, +), alignment: 16)
    var dispatch = dispatch
    dispatch.bindings = UnsafeRawPointer(memory.baseAddress)?.advanced(by: head).assumingMemoryBound(to: MABinding.self)
    memory.storeBytes(of: dispatch, as: MAKernelDispatch.self)
    var (scalars, tensors): ([(name: String, offset: Int)], [TensorPlace]) = ([], [])
    var end = head + list.count * stride
    for (position, var binding) in list.enumerated() {
      let at = head + position * stride
      if let source = binding.bytes, lengths[position] > 0 {
        let copy = UnsafeMutableRawBufferPointer(rebasing: memory[end..<(end + Int(binding.length))])
        copy.copyMemory(from: UnsafeRawBufferPointer(start: source, count: copy.count))
        binding.bytes = UnsafeRawPointer(copy.baseAddress)
        if copy.count == 4 { scalars.append(("bytes[\(binding.index)]", end)) }
        end += lengths[position]
      }
      memory.storeBytes(of: binding, toByteOffset: at, as: MABinding.self)
      guard [BindingKind.buffer.rawValue, BindingKind.use.rawValue].contains(binding.kind) else { continue }
      tensors.append(TensorPlace(memory, handleAt: at + 8, offsetAt: at + 16, lengthAt: at + 24))
    }
    self.scalars = scalars
    self.tensors = tensors
  }

  /// The offsets of the integers that the caller calls `name`; `known` gives the caller's name of a C name.
  func offsets(of name: String, _ known: (String) -> String?) -> [Int] {
    scalars.filter { $0.name == name || known($0.name) == name }.map(\.offset)
  }

  func set(_ value: UInt32, at offset: Int) {
    memory.storeBytes(of: value, toByteOffset: offset, as: UInt32.self)
  }

  /// Puts a tensor in its place.
  func set(_ place: TensorPlace, buffer: UInt32, offset: UInt64) {
    memory.storeBytes(of: buffer, toByteOffset: place.handleAt, as: UInt32.self)
    memory.storeBytes(of: offset, toByteOffset: place.offsetAt, as: UInt64.self)
  }
}

extension ArgumentBlock.TensorPlace {
  fileprivate init(_ memory: UnsafeMutableRawBufferPointer, handleAt: Int, offsetAt: Int, lengthAt: Int) {
    self.handleAt = handleAt
    self.offsetAt = offsetAt
    buffer = memory.loadUnaligned(fromByteOffset: handleAt, as: UInt32.self)
    offset = memory.loadUnaligned(fromByteOffset: offsetAt, as: UInt64.self)
    length = memory.loadUnaligned(fromByteOffset: lengthAt, as: UInt64.self)
  }
}

/// The tensors, the 32-bit integers and the lists of floats (a pointer, then how many) of a struct, those of nested
/// structs with them.
private struct StructFields {
  private(set) var tensors: [Int] = []
  private(set) var lists: [Int] = []
  private(set) var scalars: [(name: String, offset: Int)] = []

  init(of name: String) throws(StatusError) {
    try add(LayoutTable.find(name), at: 0)
  }

  private mutating func add(_ layout: StructLayout, at start: Int) throws(StatusError) {
    for field in layout.fields {
      switch field.type {
      case .structure("MATensor"): tensors.append(start + field.offset)
      case .structure(let name): try add(LayoutTable.find(name), at: start + field.offset)
      case .pointer: lists.append(start + field.offset)
      case .u32, .i32: if field.count == 1 { scalars.append((field.name, start + field.offset)) }
      default: break
      }
    }
  }
}
