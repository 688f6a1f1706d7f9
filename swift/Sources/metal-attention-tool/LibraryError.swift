import CMetalAttention

/// A refusal by the library, with its message.
struct LibraryError: Error, CustomStringConvertible {
  let status: Int32
  let description: String

  /// The calling thread's last failure.
  init(status: Int32) {
    self.status = status
    let part = UInt32(MA_FAILURE_MESSAGE)
    let length = Int(ma_last_error(part, nil, 0))
    guard length > 0 else {
      description = "the library returned status \(status) without a message"
      return
    }
    var bytes = [CChar](repeating: 0, count: length + 1)
    _ = ma_last_error(part, &bytes, UInt32(bytes.count))
    description = String(decoding: bytes.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

/// Turns a status other than success into an error.
func check(_ status: Int32) throws {
  guard status == MA_OK else { throw LibraryError(status: status) }
}

/// Calls a function that fills a buffer with text: once for the length, once for the bytes.
func libraryText(
  _ function: (UnsafeMutablePointer<CChar>?, UInt64, UnsafeMutablePointer<UInt64>?) -> Int32
) throws -> String {
  var needed: UInt64 = 0
  try check(function(nil, 0, &needed))
  let length = Int(needed)
  var bytes = [CChar](repeating: 0, count: length + 1)
  try check(function(&bytes, UInt64(bytes.count), &needed))
  return String(decoding: bytes.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
}
