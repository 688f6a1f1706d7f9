import CMetalAttention

/// A value for a `[[function_constant(index)]]` of a kernel.
struct FunctionConstant: Hashable {
  let index: UInt32
  let dtype: DType
  /// The value's bytes, first byte lowest.
  let bits: UInt32

  init(index: UInt32, bool: Bool) {
    self.index = index
    dtype = .bool
    bits = bool ? 1 : 0
  }

  /// Checks a constant of the C ABI; `position` is its place in the caller's
  /// list.
  init(_ constant: MAConstant, position: Int) throws(StatusError) {
    let argument = "constants[\(position)]"
    guard let dtype = DType(rawValue: constant.dtype), dtype != .bf16 else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(argument): dtype is \(constant.dtype); a function constant is bool, u8, i8, u32, i32, f32 or f16")
    }
    try require(
      constant.index <= 65535, StatusCode.invalidArgument,
      "\(argument): index is \(constant.index); it is at most 65535")
    var value = constant.value
    let (bits, used) = withUnsafeBytes(of: &value) { bytes in
      var bits: UInt32 = 0
      for offset in 0..<Int(dtype.size) { bits |= UInt32(bytes[offset]) << UInt32(8 * offset) }
      return (bits, bytes.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0)
    }
    try require(
      used <= Int(dtype.size), StatusCode.invalidArgument,
      "\(argument): value has \(used) bytes that are not 0; \(dtype) has \(dtype.size)")
    try require(
      dtype != .bool || bits <= 1, StatusCode.invalidArgument, "\(argument): a bool is 0 or 1, not \(bits)")
    index = constant.index
    self.dtype = dtype
    self.bits = bits
  }

  /// Reads a caller's list.
  static func list(at pointer: UnsafePointer<MAConstant>?, count: UInt32) throws(StatusError) -> [FunctionConstant] {
    let limit: UInt32 = 256
    try require(
      count <= limit, StatusCode.invalidArgument, "count is \(count) constants; it is at most \(limit)")
    if count == 0 { return [] }
    let list = UnsafeRawPointer(try unwrap(pointer, "constants"))
    var constants: [FunctionConstant] = []
    for position in 0..<Int(count) {
      let constant = list.loadUnaligned(
        fromByteOffset: position * MemoryLayout<MAConstant>.stride, as: MAConstant.self)
      constants.append(try FunctionConstant(constant, position: position))
    }
    return constants
  }

  func set(in values: MTLFunctionConstantValues) {
    // The host is little-endian: the low bytes of `bits` come first.
    withUnsafeBytes(of: bits.littleEndian) { bytes in
      guard let address = bytes.baseAddress else { return }
      values.setConstantValue(address, type: metalType, index: Int(index))
    }
  }

  private var metalType: MTLDataType {
    switch dtype {
    case .bool: .bool
    case .u8: .uchar
    case .i8: .char
    case .u32: .uint
    case .i32: .int
    case .f32: .float
    case .f16, .bf16: .half
    }
  }
}
