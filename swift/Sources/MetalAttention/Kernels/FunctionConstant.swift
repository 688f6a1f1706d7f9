import CMetalAttention

/// A value for a `[[function_constant(index)]]` of a kernel, a scalar or a
/// vector.
struct FunctionConstant: Hashable {
  /// Which constant it is for.
  enum Place: Hashable, Comparable, CustomStringConvertible {
    case index(UInt32)
    case name(String)

    var description: String {
      switch self {
      case .index(let index): "index \(index)"
      case .name(let name): "name \(name)"
      }
    }
  }

  let place: Place
  private let type: DType
  /// 1 to 4.
  private let components: Int
  /// The components without gaps, then zeros up to the size of the largest
  /// vector: Metal reads as many as a value of the type has in memory, which for
  /// three components is one more.
  private let bytes: [UInt8]

  init(index: UInt32, bool: Bool) {
    self.init(index: index, .bool, [bool ? 1 : 0])
  }

  init(index: UInt32, number: UInt32) {
    self.init(index: index, .u32, withUnsafeBytes(of: number) { Array($0) })
  }

  private init(index: UInt32, _ type: DType, _ value: [UInt8]) {
    place = .index(index)
    self.type = type
    components = 1
    bytes = value + [UInt8](repeating: 0, count: MemoryLayout.size(ofValue: MAConstant().value) - value.count)
  }

  /// Checks a constant of the C ABI; `position` is its place in the caller's
  /// list.
  init(_ constant: MAConstant, position: Int) throws(StatusError) {
    let argument = Argument("constants[\(position)]")
    guard let type = DType(rawValue: constant.dtype) else {
      let known = DType.allCases.map { "\($0)" }.joined(separator: ", ")
      throw StatusError(
        StatusCode.invalidArgument,
        "\(argument): dtype is \(constant.dtype); a function constant's is one of \(known)")
    }
    try require(
      constant.index <= 65535, StatusCode.invalidArgument,
      "\(argument): index is \(constant.index); it is at most 65535")
    try require(
      (1...4).contains(constant.components), StatusCode.invalidArgument,
      "\(argument): components is \(constant.components); it is 1 for a scalar, 2 to 4 for a vector")
    let bytes = withUnsafeBytes(of: constant.value) { Array($0) }
    let size = Int(type.size * constant.components)
    let used = bytes.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
    try require(
      used <= size, StatusCode.invalidArgument,
      "\(argument): value has \(used) bytes that are not 0; \(constant.components) of \(type) have \(size)")
    if type == .bool, let wrong = bytes.first(where: { $0 > 1 }) {
      throw StatusError(StatusCode.invalidArgument, "\(argument): a bool is 0 or 1, not \(wrong)")
    }
    if let name = constant.name {
      try require(
        constant.index == 0, StatusCode.invalidArgument,
        "\(argument): has a name and the index \(constant.index); give one of them")
      place = .name(try read(name, argument))
    } else {
      place = .index(constant.index)
    }
    self.type = type
    components = Int(constant.components)
    self.bytes = bytes
  }

  /// Reads a caller's list.
  static func list(at pointer: UnsafePointer<MAConstant>?, count: UInt32) throws(StatusError) -> [FunctionConstant] {
    let limit: UInt32 = 256
    try require(
      count <= limit, StatusCode.invalidArgument, "\(arg: "count") is \(count) constants; it is at most \(limit)")
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
    bytes.withUnsafeBytes { bytes in
      guard let address = bytes.baseAddress else { return }
      let type = type.metalTypes[components - 1]
      switch place {
      case .index(let index): values.setConstantValue(address, type: type, index: Int(index))
      case .name(let name): values.setConstantValue(address, type: type, withName: name)
      }
    }
  }
}
