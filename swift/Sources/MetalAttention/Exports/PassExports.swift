import CMetalAttention

#if compiler(>=6.3)
  @c(ma_pass_create)
#else
  @_cdecl("ma_pass_create")
#endif
public func passCreate(device: UInt32, mode: UInt32, pass: UnsafeMutablePointer<UInt32>?) -> Int32 {
  status("ma_pass_create") { () throws(StatusError) in
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(pass, "pass")
    try require(
      mode == UInt32(MA_PASS_CONCURRENT) || mode == UInt32(MA_PASS_SERIAL), StatusCode.invalidArgument,
      "mode is \(mode); it is 0 (concurrent) or 1 (serial)")
    let handle = try device.openPass(concurrent: mode == UInt32(MA_PASS_CONCURRENT))
    store(handle, to: out)
  }
}

#if compiler(>=6.3)
  @c(ma_pass_commit)
#else
  @_cdecl("ma_pass_commit")
#endif
public func passCommit(pass: UInt32) -> Int32 {
  status("ma_pass_commit") { () throws(StatusError) in
    try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").commit()
    }
  }
}

#if compiler(>=6.3)
  @c(ma_pass_wait)
#else
  @_cdecl("ma_pass_wait")
#endif
public func passWait(pass: UInt32) -> Int32 {
  status("ma_pass_wait") { () throws(StatusError) in
    let pass = try HandleSpace.lock.withLock { () throws(StatusError) in
      let pass = try HandleSpace.passes.resolve(pass, "pass")
      try require(!pass.isEncoding, StatusCode.invalidState, "the pass is not committed; commit it, then wait")
      return pass
    }
    pass.commandBuffer.waitUntilCompleted()
    if let failure = pass.failure { throw failure }
  }
}

#if compiler(>=6.3)
  @c(ma_pass_info)
#else
  @_cdecl("ma_pass_info")
#endif
public func passInfo(pass: UInt32, info: UnsafeMutablePointer<MAPassInfo>?) -> Int32 {
  status("ma_pass_info") { () throws(StatusError) in
    let out = try unwrap(info, "info")
    let (info, failure) = try HandleSpace.lock.withLock { () throws(StatusError) in
      let pass = try HandleSpace.passes.resolve(pass, "pass")
      return (pass.info, pass.failure)
    }
    store(info, to: out)
    if let failure { ThreadMessage.set("ma_pass_info: \(failure.message)") }
  }
}

#if compiler(>=6.3)
  @c(ma_pass_describe)
#else
  @_cdecl("ma_pass_describe")
#endif
public func passDescribe(
  pass: UInt32, buffer: UnsafeMutablePointer<CChar>?, capacity: UInt64, needed: UnsafeMutablePointer<UInt64>?
) -> Int32 {
  status("ma_pass_describe") { () throws(StatusError) in
    let description = try HandleSpace.lock.withLock { () throws(StatusError) in
      try HandleSpace.passes.resolve(pass, "pass").json
    }
    try write(description, to: buffer, capacity: capacity, needed: needed)
  }
}

#if compiler(>=6.3)
  @c(ma_pass_release)
#else
  @_cdecl("ma_pass_release")
#endif
public func passRelease(pass: UInt32) -> Int32 {
  status("ma_pass_release") { () throws(StatusError) in
    // Freed outside the lock, which its end does not need.
    let pass = try HandleSpace.passes.close(pass, "pass")
    HandleSpace.lock.withLock { pass.abandon() }
  }
}
