import CMetalAttention

/// How K or V of a cache is stored: in a dtype, or as codes. What a call asks of it is worked out once, and of numbers
/// alone: an enumeration with payloads is copied by functions of its own.
struct DecodeFormat {
  /// As the kernels' function constant has it: MA_DTYPE_* of what is dense; the bits of a code, plus 8 where fewer than
  /// 8 have a byte of their own.
  let constant: UInt32
  let isCoded: Bool
  /// The elements that matrices have of it: 0 for halves, of which centroids are sums, 1 for bfloats; nil of f32.
  let elements: Int?
  /// Bytes that 8 codes take; 0 of what is dense.
  private let codeWidth: UInt32

  @inline(__always)
  init(_ dtype: DType) {
    constant = dtype.rawValue
    isCoded = false
    elements = dtype == .f16 ? 0 : dtype == .bf16 ? 1 : nil
    codeWidth = 0
  }

  @inline(__always)
  init(_ codes: HadamardFormat) {
    constant = codes.packing == .byte ? codes.bits | 8 : codes.bits
    isCoded = true
    elements = 0
    codeWidth = codes.codeWidth
  }

  /// Whether its codes have more than 4 bits.
  @inline(__always)
  var isWide: Bool { codeWidth > 4 }

  /// Elements of a row of `headDim` values: of the dtype, or bytes.
  @inline(__always)
  func rowSize(_ headDim: UInt32) -> UInt32 { isCoded ? headDim / 8 * codeWidth : headDim }
}

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
