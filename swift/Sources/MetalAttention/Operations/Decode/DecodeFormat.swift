import CMetalAttention

/// How K or V of a cache is stored: in a dtype, or as codes.
enum DecodeFormat {
  case dense(DType)
  case coded(HadamardFormat)

  var isCoded: Bool {
    if case .coded = self { return true }
    return false
  }

  /// As the kernels' function constant has it: MA_DTYPE_* of what is dense; the bits of a code, plus 8 where fewer than
  /// 8 have a byte of their own.
  @inline(__always)
  var constant: UInt32 {
    switch self {
    case .dense(let dtype): dtype.rawValue
    case .coded(let format): format.packing == .byte ? format.bits | 8 : format.bits
    }
  }

  /// Whether it has so few centroids that 32 lanes look them up in a table without waiting long for each other.
  @inline(__always)
  var hasFewCentroids: Bool {
    if case .coded(let format) = self { return format.bits <= 6 }
    return false
  }

  /// Elements of a row of `headDim` values: of the dtype, or bytes.
  @inline(__always)
  func rowSize(_ headDim: UInt32) -> UInt32 {
    switch self {
    case .dense: headDim
    case .coded(let format): headDim / 8 * format.codeWidth
    }
  }
}

/// K or V of a call: its values or codes, and the norms of these.
struct DecodeStream {
  let rows: Tensor
  let norms: Tensor?
  let format: DecodeFormat

  /// The arguments of K or V: a tensor, its norms, and packing and bits of its codes.
  typealias Arguments = (rows: MATensor, norms: MATensor, packing: UInt32, bits: UInt32)
  typealias Names = (rows: TensorName, norms: TensorName, packing: StaticString, bits: StaticString)

  @inline(__always)
  init(_ arguments: Arguments, _ names: Names, of device: ObjectIdentifier) throws(StatusError) {
    rows = try Tensor(arguments.rows, names.rows, of: device)
    guard arguments.packing != 0 || arguments.bits != 0 || Tensor.isPresent(arguments.norms) else {
      try require(
        rows.dtype == .f32 || rows.dtype == .f16 || rows.dtype == .bf16, StatusCode.unsupported,
        "\(names.rows) is \(rows.dtype); it is f32, f16 or bf16, or u8 with norms, packing and bits")
      norms = nil
      format = .dense(rows.dtype)
      return
    }
    format = .coded(
      try HadamardFormat(bits: arguments.bits, names.bits, packing: arguments.packing, names.packing))
    try rows.requireDType(.u8)
    try require(
      rows.offset % 2 == 0, StatusCode.invalidArgument,
      "\(names.rows): offset \(rows.offset) is odd; codes are read in words of 2 bytes")
    let norms = try Tensor(arguments.norms, names.norms, of: device)
    try norms.requireDType(.f32)
    self.norms = norms
  }

  /// Checks that the tensors hold so many rows; `formula` says where the number comes from.
  @inline(__always)
  func requireRoom(forRows count: Count, of headDim: UInt32, _ formula: @autoclosure () -> Sentence) throws(StatusError)
  {
    let rowSize = format.rowSize(headDim)
    try rows.requireRoom(for: count * rowSize, formula() + " x row size \(rowSize)")
    let normCount = max(1, headDim / 256)
    try norms?.requireRoom(for: count * normCount, formula() + " x norms of a row \(normCount)")
  }
}
