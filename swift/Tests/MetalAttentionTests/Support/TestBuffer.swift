import CMetalAttention

/// A buffer with its contents as arrays.
struct TestBuffer {
  /// Kept open as long as the buffer is used.
  let device: TestDevice
  let handle: ma_buffer
  let contents: UnsafeMutableRawPointer?
  let length: UInt64

  func array<Element: BitwiseCopyable>(_: Element.Type) -> [Element] {
    let bytes = UnsafeRawBufferPointer(start: contents, count: Int(length))
    return Array(bytes.bindMemory(to: Element.self))
  }

  /// All of it, or a range of it, as a tensor.
  func tensor(_ dtype: Int, offset: UInt64 = 0, length: UInt64? = nil) -> MATensor {
    MATensor(buffer: handle, dtype: UInt32(dtype), offset: offset, length: length ?? self.length - offset)
  }
}
