import CMetalAttention
import Testing

/// The calling thread's last message.
var lastError: String { lastFailure(MA_FAILURE_MESSAGE) }

/// A part of the calling thread's last failure, `MA_FAILURE_*`.
func lastFailure(_ part: Int) -> String {
  let length = ma_last_error(UInt32(part), nil, 0)
  var bytes = [CChar](repeating: 0, count: Int(length) + 1)
  _ = ma_last_error(UInt32(part), &bytes, UInt32(bytes.count))
  return String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Expects success, and shows the message otherwise.
func expectOK(_ status: Int32, _ location: SourceLocation = #_sourceLocation) {
  #expect(status == MA_OK, "\(lastError)", sourceLocation: location)
}

/// Expects a status, and a message with all of `parts` in it.
func expectRefused(
  _ status: Int32, _ code: Int, _ parts: String..., location: SourceLocation = #_sourceLocation
) {
  #expect(status == code, sourceLocation: location)
  let message = lastError
  for part in parts {
    #expect(message.contains(part), "\(message)", sourceLocation: location)
  }
}

/// Calls a function of the pattern "text into a buffer, its length out".
func text(
  _ function: (UnsafeMutablePointer<CChar>?, UInt64, UnsafeMutablePointer<UInt64>?) -> Int32
) -> String {
  var needed: UInt64 = 0
  expectOK(function(nil, 0, &needed))
  var bytes = [CChar](repeating: 0x7F, count: Int(needed) + 1)
  expectOK(function(&bytes, UInt64(bytes.count), &needed))
  #expect(bytes.last == 0)
  return String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
