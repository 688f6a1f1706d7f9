/// Encodes dispatches: set a pipeline and its arguments, then dispatch. What is
/// set stays set for later dispatches of the encoder.
public protocol MTLComputeCommandEncoder: MTLCommandEncoder {
  func setComputePipelineState(_ state: any MTLComputePipelineState)

  /// Binds a buffer from `offset` bytes on; nil unbinds.
  func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)

  /// Copies at most 4 KiB as the argument `index`.
  func setBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)

  /// Says that the dispatches that follow reach a resource by its address.
  func useResource(_ resource: any MTLResource, usage: MTLResourceUsage)

  /// Sets the bytes of the kernel's argument `[[threadgroup(index)]]`, a
  /// multiple of 16.
  func setThreadgroupMemoryLength(_ length: Int, index: Int)

  /// Dispatches whole threadgroups.
  func dispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)

  /// Dispatches an exact number of threads; the last threadgroups along each
  /// dimension may be smaller.
  func dispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)

  /// Orders the dispatches before it in front of those after it.
  func memoryBarrier(scope: MTLBarrierScope)

  /// Samples counters between two dispatches, behind a barrier where that is
  /// asked. For devices that support `atDispatchBoundary`.
  func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
}
