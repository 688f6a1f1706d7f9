/// Bytes without a type. In shared storage the CPU and the device see the same
/// memory.
public protocol MTLBuffer: MTLResource {
  /// Bytes, as asked for.
  var length: Int { get }

  /// The first byte; valid as long as the buffer lives.
  func contents() -> UnsafeMutableRawPointer

  /// Where kernels find the first byte, for pointers that lie in other buffers.
  var gpuAddress: UInt64 { get }
}
