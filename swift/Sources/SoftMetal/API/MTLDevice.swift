/// A GPU, or what stands for one: makes buffers, queues, libraries and
/// pipelines.
public protocol MTLDevice: AnyObject {
  var name: String { get }
  var registryID: UInt64 { get }
  var hasUnifiedMemory: Bool { get }

  /// The most threads a threadgroup can have along each dimension. Their
  /// product is bounded by the pipeline's `maxTotalThreadsPerThreadgroup`.
  var maxThreadsPerThreadgroup: MTLSize { get }

  /// Bytes of threadgroup memory, static and dynamic together.
  var maxThreadgroupMemoryLength: Int { get }

  /// Bytes of the largest buffer.
  var maxBufferLength: Int { get }

  /// Bytes of all buffers together that the device holds without swapping.
  var recommendedMaxWorkingSetSize: UInt64 { get }

  /// Bytes of all buffers alive.
  var currentAllocatedSize: Int { get }

  func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool

  /// What can be sampled; nil for nothing.
  var counterSets: [any MTLCounterSet]? { get }

  func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool
  func makeCounterSampleBuffer(
    descriptor: MTLCounterSampleBufferDescriptor
  ) throws -> any MTLCounterSampleBuffer

  func makeCommandQueue() -> (any MTLCommandQueue)?

  /// A zero-filled buffer of `length` bytes, or nil when `length` is zero,
  /// beyond `maxBufferLength`, or cannot be allocated.
  func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?

  /// A buffer that starts as a copy of `length` bytes at `pointer`.
  func makeBuffer(
    bytes pointer: UnsafeRawPointer, length: Int, options: MTLResourceOptions
  ) -> (any MTLBuffer)?

  /// A buffer over the caller's memory. `pointer` and `length` must be
  /// multiples of the page size; `deallocator` runs when the buffer goes.
  func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions,
    deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
  ) -> (any MTLBuffer)?

  /// Compiles Metal Shading Language source.
  ///
  /// - Throws: `MTLLibraryError` with the compiler's diagnostics.
  func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary

  /// - Throws: `MTLLibraryError` when the function exceeds a limit of the
  ///   device.
  func makeComputePipelineState(
    function computeFunction: any MTLFunction
  ) throws -> any MTLComputePipelineState

  /// As above; `reflection` gets what `options` ask for.
  func makeComputePipelineState(
    function computeFunction: any MTLFunction, options: MTLPipelineOption,
    reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
  ) throws -> any MTLComputePipelineState
}

/// Apple's declarations have default arguments, which a protocol cannot state.
extension MTLDevice {
  public func makeBuffer(length: Int) -> (any MTLBuffer)? {
    makeBuffer(length: length, options: [])
  }

  public func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int) -> (any MTLBuffer)? {
    makeBuffer(bytes: pointer, length: length, options: [])
  }

  public func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions = []
  ) -> (any MTLBuffer)? {
    makeBuffer(bytesNoCopy: pointer, length: length, options: options, deallocator: nil)
  }

  public func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int,
    deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
  ) -> (any MTLBuffer)? {
    makeBuffer(bytesNoCopy: pointer, length: length, options: [], deallocator: deallocator)
  }
}
