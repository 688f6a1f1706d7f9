/// Memory of a device's own for what a dispatch leaves to the next one. It
/// grows to the largest need and is kept, so that a steady state allocates
/// nothing. Guarded by the lock of `HandleSpace`.
final class Scratch {
  /// What stands for it in accesses; no buffer of a caller's has it.
  static let handle: UInt32 = 0

  /// Bytes of the placeholder: as many as any element has, and more.
  private static let placeholderLength: UInt64 = 256

  private var buffer: Buffer?
  private var absent: Buffer?

  /// Bytes.
  var length: UInt64 { buffer?.length ?? 0 }

  /// At least `bytes` of it. What is in use by a pass stays until that ends.
  /// - Parameter purpose: what the dispatch keeps there, for messages.
  func buffer(of bytes: UInt64, for purpose: StaticString, on device: Device) throws(StatusError) -> Buffer {
    if let buffer, buffer.length >= bytes { return buffer }
    let larger = try make(bytes, for: purpose, on: device)
    buffer = larger
    return larger
  }

  /// What is bound for arguments that a kernel has and does not read: always the same, so that it stays bound.
  @inline(__always)
  func placeholder(on device: Device) throws(StatusError) -> Unmanaged<Buffer> {
    if let absent { return .passUnretained(absent) }
    return .passUnretained(try makePlaceholder(on: device))
  }

  @inline(never)
  private func makePlaceholder(on device: Device) throws(StatusError) -> Buffer {
    let made = try make(Self.placeholderLength, for: "absent arguments", on: device)
    absent = made
    return made
  }

  private func make(_ bytes: UInt64, for purpose: StaticString, on device: Device) throws(StatusError) -> Buffer {
    guard let count = Int(exactly: bytes), count <= device.maxBufferLength,
      let made = device.metal.makeBuffer(length: count, options: .storageModePrivate)
    else {
      throw device.allocationError(
        "\(bytes) bytes of scratch for \(purpose)", remedy: "attend to fewer sequences or rows at once")
    }
    // Nothing shares it: memory that may be shared has numbers from 1 on.
    return Buffer(device: device, metal: made, length: bytes, number: 0)
  }

  /// What a device that closes frees: they hold their device as any buffer does.
  func take() -> [Buffer] {
    defer { (buffer, absent) = (nil, nil) }
    return [buffer, absent].compactMap(\.self)
  }

  /// Bytes of it that a dispatch reads or writes.
  static func access(_ bytes: Range<UInt64>, isWrite: Bool) -> Access {
    Access(buffer: handle, isWrite: isWrite, start: bytes.lowerBound, end: bytes.upperBound)
  }
}
