#if compiler(>=6.3)
  @c(ma_buffer_create)
#else
  @_cdecl("ma_buffer_create")
#endif
public func bufferCreate(
  device: UInt32, length: UInt64, buffer: UnsafeMutablePointer<UInt32>?,
  contents: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> Int32 {
  status("ma_buffer_create") { () throws(StatusError) in
    let device = try HandleSpace.devices.open(device, "device")
    let (outBuffer, outContents) = (try unwrap(buffer, "buffer"), try unwrap(contents, "contents"))
    let buffer = try device.makeBuffer(length: length)
    let handle = try device.adopt(buffer, in: HandleSpace.buffers)
    store(handle, to: outBuffer)
    store(buffer.metal.contents(), to: outContents)
  }
}

#if compiler(>=6.3)
  @c(ma_buffer_info)
#else
  @_cdecl("ma_buffer_info")
#endif
public func bufferInfo(
  buffer: UInt32, length: UnsafeMutablePointer<UInt64>?, contents: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> Int32 {
  status("ma_buffer_info") { () throws(StatusError) in
    let buffer = try HandleSpace.buffers.open(buffer, "buffer")
    let (outLength, outContents) = (try unwrap(length, "length"), try unwrap(contents, "contents"))
    store(buffer.length, to: outLength)
    store(buffer.metal.contents(), to: outContents)
  }
}

#if compiler(>=6.3)
  @c(ma_buffer_release)
#else
  @_cdecl("ma_buffer_release")
#endif
public func bufferRelease(buffer: UInt32) -> Int32 {
  status("ma_buffer_release") { () throws(StatusError) in
    _ = try HandleSpace.buffers.close(buffer, "buffer")
  }
}
