#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Names the memory of buffers within a process, for other devices of it to adopt.
enum SharedMemory {
  /// Numbers below this are exact in any language.
  private static let limit: UInt64 = 1 << 53

  /// Tells this process from every other.
  static let process = UInt64.random(in: 1..<limit)

  /// Guarded by the lock of `HandleSpace`.
  nonisolated(unsafe) private static var count: UInt64 = 0

  /// A number that no memory of the process had before.
  static func nextNumber() -> UInt64 {
    HandleSpace.lock.withLock {
      count += 1
      return count
    }
  }

  /// The buffer whose memory another device shares. The caller holds the lock.
  static func find(_ handle: UInt32, process: UInt64, number: UInt64) throws(StatusError) -> Buffer {
    try require(
      process == Self.process, StatusCode.invalidHandle,
      "\(arg: "shared"): it was shared by another process; memory is shared within one")
    guard let buffer = HandleSpace.buffers.find(handle)?.takeUnretainedValue(), buffer.number == number else {
      throw StatusError(
        StatusCode.invalidHandle,
        "\(arg: "shared"): its buffer is no longer open; keep it until it is adopted")
    }
    try require(
      buffer.contents != nil, StatusCode.unsupported,
      "\(arg: "shared"): private storage is its device's alone; share a buffer of shared storage")
    return buffer
  }
}

extension Device {
  /// Makes a buffer over the memory of another device's.
  func makeBuffer(over other: Buffer) throws(StatusError) -> Buffer {
    guard let metal = other.device.metal === metal ? other.metal : wrap(other.metal) else {
      throw StatusError(StatusCode.outOfMemory, "the device could not take over \(other.length) bytes")
    }
    return Buffer(device: self, metal: metal, length: other.length, number: other.number)
  }

  /// The pages of another Metal device's buffer, which stay as long as this one.
  private func wrap(_ other: any MTLBuffer) -> (any MTLBuffer)? {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    return metal.makeBuffer(
      bytesNoCopy: other.contents(), length: (other.length + page - 1) / page * page, options: .storageModeShared,
      deallocator: { _, _ in withExtendedLifetime(other) {} })
  }
}
