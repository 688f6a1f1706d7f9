import CMetalAttention

extension Device {
  /// Of every Apple GPU with the functions of SIMD groups that the kernels use, of NVIDIA's, and of the software device:
  /// Metal tells it of a pipeline alone.
  static let simdWidth: UInt32 = 32

  var info: MADeviceInfo {
    var info = MADeviceInfo()
    withUnsafeMutableBytes(of: &info.name) { copy(metal.name, to: $0) }
    withUnsafeMutableBytes(of: &info.backend) { copy(backendName, to: $0) }
    info.registryID = metal.registryID
    info.maxBufferLength = UInt64(clamping: maxBufferLength)
    info.recommendedMaxWorkingSetSize = metal.recommendedMaxWorkingSetSize
    info.currentAllocatedSize = UInt64(clamping: metal.currentAllocatedSize)
    info.scratchLength = HandleSpace.lock.withLock { scratch.length }
    info.maxThreadgroupMemoryLength = UInt32(clamping: maxThreadgroupMemoryLength)
    info.maxThreadsPerThreadgroup = (
      UInt32(clamping: maxThreadsPerThreadgroup.width), UInt32(clamping: maxThreadsPerThreadgroup.height),
      UInt32(clamping: maxThreadsPerThreadgroup.depth)
    )
    info.hasUnifiedMemory = metal.hasUnifiedMemory ? 1 : 0
    info.simdWidth = Self.simdWidth
    return info
  }

  private func copy(_ text: String, to field: UnsafeMutableRawBufferPointer) {
    var text = text
    text.withUTF8 { bytes in
      write(
        UnsafeRawBufferPointer(bytes), to: field.baseAddress?.assumingMemoryBound(to: CChar.self),
        capacity: UInt64(field.count))
    }
  }
}
