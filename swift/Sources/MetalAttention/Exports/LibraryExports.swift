import CMetalAttention

/// The bodies of the exported functions that encode no operation; the C
/// functions themselves are generated (`Generated/Exports.swift`).
enum Exports {
  static func abiVersion() -> Int32 {
    MA_ABI_VERSION
  }

  static func lastError(_ part: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt32) -> Int32 {
    guard let part = FailurePart(rawValue: part) else { return 0 }
    return ThreadText.withBytes(of: part) { text in
      write(text, to: buffer, capacity: UInt64(capacity))
      return Int32(clamping: text.count)
    }
  }

  static func nameArguments(_ names: UnsafePointer<CChar>?) throws(StatusError) {
    try ArgumentNames.add(read(names, "names"))
  }

  static func kernelsProvide(_ archive: UnsafeRawPointer?, _ length: UInt64) throws(StatusError) {
    let archive = UnsafeRawBufferPointer(start: try unwrap(archive, "archive"), count: Int(clamping: length))
    try require(
      provideKernels(archive), StatusCode.invalidArgument,
      "\(arg: "archive"): no tar archive of kernels, such as kernels.tar of the platform package")
  }

  static func supportJson(
    _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64, _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    try write(Support.json, to: buffer, capacity: capacity, needed: needed)
  }

  static func layoutJson(
    _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64, _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    try write(LayoutTable.json, to: buffer, capacity: capacity, needed: needed)
  }

  static func layoutRead(
    _ structName: UnsafePointer<CChar>?, _ field: UnsafePointer<CChar>?, _ element: UInt32, _ bytes: UnsafeRawPointer?,
    _ length: UInt64, _ integer: UnsafeMutablePointer<Int64>?, _ real: UnsafeMutablePointer<Double>?
  ) throws(StatusError) {
    let layout = try LayoutTable.find(read(structName, "structName"))
    let field = try read(field, "field")
    let bytes = UnsafeRawBufferPointer(start: try unwrap(bytes, "bytes"), count: Int(clamping: length))
    let (integer, real) = (try unwrap(integer, "integer"), try unwrap(real, "real"))
    switch try LayoutReader.read(field, element: element, of: layout, from: bytes) {
    case .integer(let value): store(value, to: integer)
    case .real(let value): store(value, to: real)
    }
  }
}
