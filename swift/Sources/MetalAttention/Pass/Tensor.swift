import CMetalAttention

/// A tensor argument, checked: its buffer is open, belongs to the pass's
/// device and holds the whole range.
struct Tensor {
  /// Kept alive by the lock under which operations are encoded.
  let buffer: Unmanaged<Buffer>
  let handle: UInt32
  let dtype: DType
  let name: TensorName
  /// Bytes.
  let offset: UInt64
  let length: UInt64

  @inline(__always)
  init(_ tensor: MATensor, _ name: TensorName, in pass: Pass) throws(StatusError) {
    try self.init(tensor, name, of: pass.deviceIdentity)
  }

  /// Of `Pass.deviceIdentity` alone: a pass that checks hold on to is counted for each tensor.
  @inline(__always)
  init(_ tensor: MATensor, _ name: TensorName, of device: ObjectIdentifier) throws(StatusError) {
    buffer = try HandleSpace.buffers.resolveUncounted(tensor.buffer, Argument("\(name)"))
    guard let dtype = DType(rawValue: tensor.dtype) else {
      let known = DType.allCases.map { "\($0)" }.joined(separator: ", ")
      throw StatusError(StatusCode.invalidArgument, "\(name): dtype is \(tensor.dtype); a tensor's is one of \(known)")
    }
    self.dtype = dtype
    self.name = name
    handle = tensor.buffer
    offset = tensor.offset
    length = tensor.length
    try require(
      offset % UInt64(dtype.size) == 0, StatusCode.invalidArgument,
      "\(name): offset \(tensor.offset) is not a multiple of \(dtype)'s \(dtype.size) bytes")
    _ = try buffer.requireRange(offset, length, of: device, Argument("\(name)"))
  }

  /// A part of memory of the library's own.
  init(buffer: Unmanaged<Buffer>, handle: UInt32, dtype: DType, name: TensorName, offset: UInt64, length: UInt64) {
    self.buffer = buffer
    self.handle = handle
    self.dtype = dtype
    self.name = name
    self.offset = offset
    self.length = length
  }

  /// What is bound in place of a tensor that the caller did not give: empty, at the start of a placeholder.
  @inline(__always)
  init(absent: Unmanaged<Buffer>, _ dtype: DType, _ name: TensorName) {
    self.init(buffer: absent, handle: Scratch.handle, dtype: dtype, name: name, offset: 0, length: 0)
  }

  /// Whether the caller gave a tensor at all.
  @inline(__always)
  static func isPresent(_ tensor: MATensor) -> Bool {
    tensor.buffer != 0 || tensor.dtype != 0 || tensor.offset != 0 || tensor.length != 0
  }

  /// Checks that `elements` fit; `formula` says where the number comes from.
  @inline(__always)
  func requireRoom(for elements: Count, _ formula: @autoclosure () -> Sentence) throws(StatusError) {
    let bytes = elements * dtype.size
    try require(
      !bytes.overflowed, StatusCode.overflow, "\(name): its size, \(formula()), leaves 64 bits")
    try require(
      bytes.value <= length, StatusCode.bufferTooSmall,
      "\(name): has \(length) bytes, needs \(bytes.value): \(formula()) elements of \(dtype)")
  }

  /// Checks that the element type is the one that the operation requires.
  @inline(__always)
  func requireDType(_ expected: DType) throws(StatusError) {
    try require(dtype == expected, StatusCode.unsupported, "\(name) is \(dtype); it is \(expected)")
  }

  /// A tensor that may be absent, of the dtype that the operation requires.
  @inline(__always)
  static func optional(
    _ tensor: MATensor, _ name: TensorName, _ dtype: DType, of device: ObjectIdentifier
  ) throws(StatusError) -> Tensor? {
    if !isPresent(tensor) { return nil }
    let tensor = try Tensor(tensor, name, of: device)
    try tensor.requireDType(dtype)
    return tensor
  }

  /// What a dispatch touches of this tensor, in elements from its start.
  @inline(__always)
  func access(_ elements: Range<UInt64>, isWrite: Bool) -> Access {
    Access(
      buffer: handle, isWrite: isWrite, start: offset + elements.lowerBound * UInt64(dtype.size),
      end: offset + elements.upperBound * UInt64(dtype.size))
  }

  /// The same of all of it.
  @inline(__always)
  func whole(isWrite: Bool) -> Access {
    Access(buffer: handle, isWrite: isWrite, start: offset, end: offset + length)
  }
}
