/// Copies `text` into a caller's buffer of `capacity` bytes as NUL-terminated
/// UTF-8, cut before the first character that does not fit.
func write(_ text: UnsafeRawBufferPointer, to buffer: UnsafeMutablePointer<CChar>?, capacity: UInt64) {
  guard let buffer, capacity > 0 else { return }
  let room = Int(clamping: capacity - 1)
  var length = min(text.count, room)
  // A byte 10xxxxxx continues a character.
  while length < text.count, length > 0, text[length] & 0xC0 == 0x80 { length -= 1 }
  let target = UnsafeMutableRawBufferPointer(start: buffer, count: length + 1)
  target.copyMemory(from: UnsafeRawBufferPointer(rebasing: text[0..<length]))
  target[length] = 0
}

/// The pattern of functions that return text: its length goes to `needed`, as
/// much as fits to `buffer`, which may be NULL when `capacity` is 0.
func write(
  _ text: String, to buffer: UnsafeMutablePointer<CChar>?, capacity: UInt64, needed: UnsafeMutablePointer<UInt64>?
) throws(StatusError) {
  let needed = try unwrap(needed, "needed")
  try require(
    buffer != nil || capacity == 0, StatusCode.invalidArgument, "\(arg: "buffer") is NULL, but capacity is \(capacity)")
  var text = text
  text.withUTF8 { bytes in
    write(UnsafeRawBufferPointer(bytes), to: buffer, capacity: capacity)
    store(UInt64(bytes.count), to: needed)
  }
}
