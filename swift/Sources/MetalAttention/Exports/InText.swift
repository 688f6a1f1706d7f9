/// A caller's NUL-terminated text, which is not empty and valid UTF-8.
func read(_ text: UnsafePointer<CChar>?, _ argument: Argument) throws(StatusError) -> String {
  let pointer = try unwrap(text, argument)
  guard let string = String(validatingCString: pointer) else {
    throw StatusError(StatusCode.invalidArgument, "\(argument) is not valid UTF-8")
  }
  try require(!string.isEmpty, StatusCode.invalidArgument, "\(argument) is empty")
  return string
}

/// A caller's text of `length` bytes, which is not empty and holds no NUL.
func read(_ text: UnsafePointer<CChar>?, length: UInt64, _ argument: Argument) throws(StatusError) -> String {
  let pointer = try unwrap(text, argument)
  let limit = 64 << 20
  guard let count = Int(exactly: length), count > 0, count <= limit else {
    throw StatusError(
      StatusCode.invalidArgument, "\(argument): length is \(length) bytes; it is 1 to \(limit)")
  }
  let bytes = UnsafeRawBufferPointer(start: pointer, count: count)
  try require(!bytes.contains(0), StatusCode.invalidArgument, "\(argument) holds a NUL byte")
  return String(decoding: bytes, as: UTF8.self)
}
