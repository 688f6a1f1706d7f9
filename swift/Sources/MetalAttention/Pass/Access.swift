/// The bytes of a buffer that a dispatch reads or writes. A strided tensor
/// spans its first byte to its last.
struct Access {
  /// Handle of the buffer; no two buffers that a pass can see share one.
  let buffer: UInt32
  let isWrite: Bool
  let start: UInt64
  /// The byte after the last.
  let end: UInt64

  @inline(__always)
  func overlaps(_ other: Access) -> Bool {
    buffer == other.buffer && start < other.end && other.start < end
  }

  /// Checks that two tensors of one dispatch share no byte.
  @inline(__always)
  func requireApart(_ name: TensorName, from other: Access, _ otherName: TensorName) throws(StatusError) {
    try require(
      !overlaps(other), StatusCode.invalidArgument,
      "\(name) and \(otherName) overlap in one buffer: bytes \(start) to \(end) and \(other.start) to \(other.end)")
  }
}
