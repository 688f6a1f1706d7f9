extension Exports {
  static func bufferCreate(
    _ device: UInt32, _ length: UInt64, _ storage: UInt32, _ buffer: UnsafeMutablePointer<UInt32>?,
    _ contents: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(StatusError) {
    let device = try HandleSpace.devices.open(device, "device")
    guard let storage = Storage(rawValue: storage) else {
      throw StatusError(
        StatusCode.invalidArgument, "\(arg: "storage") is \(storage); it is MA_STORAGE_SHARED (0) or _PRIVATE (1)")
    }
    let (outBuffer, outContents) = (try unwrap(buffer, "buffer"), try unwrap(contents, "contents"))
    let buffer = try device.makeBuffer(length: length, storage: storage)
    let handle = try device.adopt(buffer, in: HandleSpace.buffers)
    store(handle, to: outBuffer)
    store(buffer.contents, to: outContents)
  }

  static func bufferInfo(
    _ buffer: UInt32, _ length: UnsafeMutablePointer<UInt64>?,
    _ contents: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(StatusError) {
    let buffer = try HandleSpace.buffers.open(buffer, "buffer")
    let (outLength, outContents) = (try unwrap(length, "length"), try unwrap(contents, "contents"))
    store(buffer.length, to: outLength)
    store(buffer.contents, to: outContents)
  }

  static func bufferAddress(_ buffer: UInt32, _ address: UnsafeMutablePointer<UInt64>?) throws(StatusError) {
    let (buffer, out) = (try HandleSpace.buffers.open(buffer, "buffer"), try unwrap(address, "address"))
    store(buffer.metal.gpuAddress, to: out)
  }

  static func bufferRelease(_ buffer: UInt32) throws(StatusError) {
    let released = try HandleSpace.buffers.close(buffer, "buffer")
    HandleSpace.lock.withLock {
      released.isOpen = false
      released.device.tileClasses.forget(buffer)
    }
  }

  static func bufferShare(
    _ buffer: UInt32, _ process: UnsafeMutablePointer<UInt64>?, _ number: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    let buffer = try HandleSpace.buffers.open(buffer, "buffer")
    let (outProcess, outNumber) = (try unwrap(process, "process"), try unwrap(number, "number"))
    try require(
      buffer.contents != nil, StatusCode.unsupported,
      "\(arg: "buffer"): private storage is its device's alone; share a buffer of shared storage")
    store(SharedMemory.process, to: outProcess)
    store(buffer.number, to: outNumber)
  }

  static func bufferAdopt(
    _ device: UInt32, _ shared: UInt32, _ process: UInt64, _ number: UInt64, _ buffer: UnsafeMutablePointer<UInt32>?,
    _ contents: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(StatusError) {
    let device = try HandleSpace.devices.open(device, "device")
    let (outBuffer, outContents) = (try unwrap(buffer, "buffer"), try unwrap(contents, "contents"))
    let other = try HandleSpace.lock.withLock { () throws(StatusError) in
      try SharedMemory.find(shared, process: process, number: number)
    }
    let buffer = try device.makeBuffer(over: other)
    let handle = try device.adopt(buffer, in: HandleSpace.buffers)
    store(handle, to: outBuffer)
    store(buffer.contents, to: outContents)
  }

  static func bufferCollected(
    _ contents: UnsafeMutableRawPointer?, _ buffer: UnsafeMutableRawPointer?
  ) throws(StatusError) {
    let handle = UInt32(truncatingIfNeeded: UInt(bitPattern: buffer))
    let released = HandleSpace.lock.withLock { () -> Buffer? in
      let released = HandleSpace.buffers.remove(handle)
      released?.isOpen = false
      released?.device.tileClasses.forget(handle)
      return released
    }
    // Freed here, outside the lock.
    withExtendedLifetime(released) {}
  }

  static func bufferHold(
    _ buffer: UInt32, _ hold: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(StatusError) {
    let (buffer, outHold) = (try HandleSpace.buffers.open(buffer, "buffer"), try unwrap(hold, "hold"))
    store(Unmanaged.passRetained(buffer.metal as AnyObject).toOpaque(), to: outHold)
  }

  static func holdRelease(_ contents: UnsafeMutableRawPointer?, _ hold: UnsafeMutableRawPointer?) throws(StatusError) {
    Unmanaged<AnyObject>.fromOpaque(try unwrap(hold, "hold")).release()
  }

  static func bufferWritten(_ buffer: UInt32, _ offset: UInt64, _ length: UInt64) throws(StatusError) {
    try HandleSpace.lock.withLock { () throws(StatusError) in
      let object = try HandleSpace.buffers.resolve(buffer, "buffer")
      let (end, overflow) = offset.addingReportingOverflow(length)
      try require(
        !overflow && end <= object.length, StatusCode.bufferTooSmall,
        "\(arg: "buffer"): \(length) bytes from offset \(offset) leave its \(object.length) bytes")
      object.device.tileClasses.noteHostWrite(Access(buffer: buffer, isWrite: true, start: offset, end: end))
    }
  }
}
