import CMetalAttention

#if compiler(>=6.3)
  @c(ma_abi_version)
#else
  @_cdecl("ma_abi_version")
#endif
public func abiVersion() -> Int32 {
  MA_ABI_VERSION
}

#if compiler(>=6.3)
  @c(ma_last_error)
#else
  @_cdecl("ma_last_error")
#endif
public func lastError(buffer: UnsafeMutablePointer<CChar>?, capacity: UInt32) -> Int32 {
  ThreadMessage.withBytes { message in
    write(message, to: buffer, capacity: UInt64(capacity))
    return Int32(clamping: message.count)
  }
}

#if compiler(>=6.3)
  @c(ma_layout_json)
#else
  @_cdecl("ma_layout_json")
#endif
public func layoutJSON(
  buffer: UnsafeMutablePointer<CChar>?, capacity: UInt64, needed: UnsafeMutablePointer<UInt64>?
) -> Int32 {
  status("ma_layout_json") { () throws(StatusError) in
    try write(LayoutTable.json, to: buffer, capacity: capacity, needed: needed)
  }
}

#if compiler(>=6.3)
  @c(ma_layout_read)
#else
  @_cdecl("ma_layout_read")
#endif
public func layoutRead(
  structName: UnsafePointer<CChar>?, field: UnsafePointer<CChar>?, element: UInt32, bytes: UnsafeRawPointer?,
  length: UInt64, integer: UnsafeMutablePointer<Int64>?, real: UnsafeMutablePointer<Double>?
) -> Int32 {
  status("ma_layout_read") { () throws(StatusError) in
    let layout = try LayoutTable.find(read(structName, "structName"))
    let field = try read(field, "field")
    let bytes = UnsafeRawBufferPointer(start: try unwrap(bytes, "bytes"), count: Int(clamping: length))
    let (integer, real) = (try unwrap(integer, "integer"), try unwrap(real, "real"))
    switch try LayoutReader.read(field, element: element, of: layout, from: bytes) {
    case .integer(let value): store(value, to: integer)
    case .real(let value): store(value, to: real)
    }
  }
}
