import CSoftMetal

/// What a kernel is launched with: an `SmGpuDispatch`, and behind it the arguments that it takes by value.
final class LaunchParameter {
  /// As the driver takes it.
  let memory = UnsafeMutableRawPointer.allocate(
    byteCount: ValueArgument.parameterLength, alignment: MemoryLayout<SmGpuDispatch>.alignment)

  deinit { memory.deallocate() }

  func set(_ dispatch: SmGpuDispatch) {
    memory.storeBytes(of: dispatch, as: SmGpuDispatch.self)
  }

  /// Copies an argument of the dispatch. One that is absent is 0: a kernel may read it ahead of the condition.
  ///
  /// - Parameters:
  ///   - uploads: the list's copies of bytes, as what `setBytes` has given is at hand.
  ///   - fetch: copies bytes from any other address on the device.
  func take(
    _ value: ValueArgument, of dispatch: SmDispatch, from uploads: [ByteArena.Upload],
    fetch: (_ target: UnsafeMutableRawPointer, _ address: UInt, _ length: Int) throws(MTLCommandBufferError) -> Void
  ) throws(MTLCommandBufferError) {
    let target = memory + value.offset
    let address = withUnsafeBytes(of: dispatch.buffers) {
      $0.load(fromByteOffset: value.index * MemoryLayout<UInt>.stride, as: UInt.self)
    }
    guard address != 0 else {
      target.initializeMemory(as: UInt8.self, repeating: 0, count: value.length)
      return
    }
    for upload in uploads {
      let (offset, isBefore) = address.subtractingReportingOverflow(UInt(bitPattern: upload.target))
      guard !isBefore, offset < upload.length, value.length <= upload.length - Int(offset) else { continue }
      target.copyMemory(from: upload.source + Int(offset), byteCount: value.length)
      return
    }
    try fetch(target, address, value.length)
  }
}
