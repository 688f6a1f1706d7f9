import CMetalAttention

/// K or V of a call: its values or codes, and the norms of these.
struct DecodeStream {
  let rows: Tensor
  /// Of codes; a placeholder where rows are values.
  let norms: Tensor
  let format: DecodeFormat

  /// The arguments of K or V: a tensor, its norms, and packing and bits of its codes.
  typealias Arguments = (rows: MATensor, norms: MATensor, packing: UInt32, bits: UInt32)
  typealias Names = (rows: TensorName, norms: TensorName, packing: StaticString, bits: StaticString)

  /// Whether the caller gave codes, by whatever says so.
  @inline(__always)
  static func areCodes(_ arguments: Arguments) -> Bool {
    arguments.packing != 0 || arguments.bits != 0 || Tensor.isPresent(arguments.norms)
  }

  /// - Parameters:
  ///   - device: as `Pass.deviceIdentity` has it.
  ///   - absent: what stands for norms that are not given.
  @inline(__always)
  init(
    _ arguments: Arguments, _ names: Names, of device: ObjectIdentifier, or absent: Unmanaged<Buffer>
  ) throws(StatusError) {
    if Self.areCodes(arguments) {
      try self.init(codes: arguments, names, of: device)
    } else {
      try self.init(values: arguments, names, of: device, or: absent)
    }
  }

  @inline(__always)
  private init(
    values arguments: Arguments, _ names: Names, of device: ObjectIdentifier, or absent: Unmanaged<Buffer>
  ) throws(StatusError) {
    rows = try Tensor(arguments.rows, names.rows, of: device)
    try require(
      rows.dtype == .f32 || rows.dtype == .f16 || rows.dtype == .bf16, StatusCode.unsupported,
      "\(names.rows) is \(rows.dtype); it is f32, f16 or bf16, or u8 with norms, packing and bits")
    norms = Tensor(absent: absent, .f32, names.norms)
    format = DecodeFormat(rows.dtype)
  }

  /// - Parameter device: as `Pass.deviceIdentity` has it.
  @inline(__always)
  init(codes arguments: Arguments, _ names: Names, of device: ObjectIdentifier) throws(StatusError) {
    rows = try Tensor(arguments.rows, names.rows, of: device)
    format = DecodeFormat(
      try HadamardFormat(bits: arguments.bits, names.bits, packing: arguments.packing, names.packing))
    try rows.requireDType(.u8)
    try require(
      rows.offset % 2 == 0, StatusCode.invalidArgument,
      "\(names.rows): offset \(rows.offset) is odd; codes are read in words of 2 bytes")
    norms = try Tensor(arguments.norms, names.norms, of: device)
    try norms.requireDType(.f32)
  }

  /// Checks that the tensors hold so many rows; `formula` says where the number comes from.
  @inline(__always)
  func requireRoom(forRows count: Count, of headDim: UInt32, _ formula: @autoclosure () -> Sentence) throws(StatusError)
  {
    let rowSize = format.rowSize(headDim)
    try rows.requireRoom(for: count * rowSize, formula() + " x row size \(rowSize)")
    guard format.isCoded else { return }
    let normCount = max(1, headDim / 256)
    try norms.requireRoom(for: count * normCount, formula() + " x norms of a row \(normCount)")
  }
}
