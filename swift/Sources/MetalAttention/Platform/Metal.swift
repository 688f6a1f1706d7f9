// The device API: Apple's framework, or the software device that declares the
// same API. The rest of the library cannot tell them apart.
#if canImport(Metal)
  @_exported import Metal

  let backendName = "Metal"

  /// What runs a kernel.
  func executor(of state: any MTLComputePipelineState) -> String { "GPU" }

  /// Metal does not tell.
  func coreCount(of device: any MTLDevice) -> Int? { nil }

  /// A GPU has a long way to memory, and few threads to fill the time.
  func asksAhead(on device: any MTLDevice) -> Bool { true }

  /// Metal compiles by itself.
  func provideKernels(_ archive: UnsafeRawBufferPointer) -> Bool { true }
#else
  @_exported import SoftMetal

  let backendName = "SoftMetal"

  /// Takes kernels that were compiled ahead of time. False where the archive has none.
  func provideKernels(_ archive: UnsafeRawBufferPointer) -> Bool { PrecompiledShaders.provide(archive) }
#endif
