import CMetalAttention

extension Exports {
  static func passCreate(_ device: UInt32, _ mode: UInt32, _ pass: UnsafeMutablePointer<UInt32>?) throws(StatusError) {
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(pass, "pass")
    let (recorded, profiled) = (UInt32(MA_PASS_RECORDED), UInt32(MA_PASS_PROFILED))
    try require(
      mode & ~(UInt32(MA_PASS_SERIAL) | recorded | profiled) == 0
        && mode & (recorded | profiled) != recorded | profiled,
      StatusCode.invalidArgument,
      "\(arg: "mode") is \(mode); it is 0 (concurrent) or 1 (serial), with 2 (recorded) or 4 (profiled) added")
    let isConcurrent = mode & UInt32(MA_PASS_SERIAL) == 0
    if mode & recorded != 0 {
      store(try device.openRecording(concurrent: isConcurrent), to: out)
    } else {
      store(try device.openPass(concurrent: isConcurrent, profiled: mode & profiled != 0), to: out)
    }
  }

  static func passCommit(_ pass: UInt32) throws(StatusError) {
    try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").commit(notifies: false)
    }
  }

  static func passCommitNotify(_ pass: UInt32) throws(StatusError) {
    try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").commit(notifies: true)
    }
  }

  static func passWait(_ pass: UInt32) throws(StatusError) {
    let pass = try HandleSpace.lock.withLock { () throws(StatusError) in
      let pass = try HandleSpace.passes.resolve(pass, "pass")
      try require(!pass.isEncoding, StatusCode.invalidState, "the pass is not committed; commit it, then wait")
      return pass
    }
    pass.commandBuffer?.waitUntilCompleted()
    if let failure = pass.failure { throw failure }
  }

  static func passInfo(_ pass: UInt32, _ info: UnsafeMutablePointer<MAPassInfo>?) throws(StatusError) {
    let out = try unwrap(info, "info")
    let (info, failure) = try HandleSpace.lock.withLock { () throws(StatusError) in
      let pass = try HandleSpace.passes.resolve(pass, "pass")
      return (pass.info, pass.failure)
    }
    store(info, to: out)
    if let failure { Failure.set("ma_pass_info", failure) }
  }

  static func passDescribe(
    _ pass: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64, _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    let description = try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").json
    }
    try write(description, to: buffer, capacity: capacity, needed: needed)
  }

  static func passArgumentBytes(
    _ pass: UInt32, _ dispatch: UInt32, _ index: UInt32, _ buffer: UnsafeMutableRawPointer?, _ capacity: UInt64,
    _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    let needed = try unwrap(needed, "needed")
    try require(
      buffer != nil || capacity == 0, StatusCode.invalidArgument,
      "\(arg: "buffer") is NULL, but \(arg: "capacity") is \(capacity)")
    let bytes = try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").argumentBytes(dispatch: dispatch, index: index)
    }
    bytes.withUnsafeBytes { bytes in
      let count = min(bytes.count, Int(clamping: capacity))
      if let buffer, let source = bytes.baseAddress { buffer.copyMemory(from: source, byteCount: count) }
    }
    store(UInt64(bytes.count), to: needed)
  }

  static func passRelease(_ pass: UInt32) throws(StatusError) {
    // Freed outside the lock, which its end does not need.
    let pass = try HandleSpace.passes.close(pass, "pass")
    HandleSpace.lock.withLock { pass.abandon() }
  }
}
