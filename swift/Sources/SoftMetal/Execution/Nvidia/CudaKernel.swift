import CSoftMetal

/// A kernel's code on an NVIDIA GPU, with its function constants set.
final class CudaKernel: @unchecked Sendable {
  private let whole: CudaDriver.Pointer
  private let partial: CudaDriver.Pointer
  let maxThreads: Int
  /// Bytes of threadgroup variables.
  let staticThreadgroupMemoryLength: Int
  /// Whether it waits itself for what is before it in its stream.
  let waits: Bool
  /// What it takes by value.
  let values: [ValueArgument]
  private let module: CudaDriver.Pointer
  private let context: CudaContext

  private enum Attribute {
    static let maxThreads: Int32 = 0
    static let sharedSize: Int32 = 1
  }

  /// Has the driver compile it.
  ///
  /// - Throws: `MTLLibraryError` with what the driver says.
  init(_ source: SoftFunction, _ context: CudaContext) throws {
    self.context = context
    let driver = context.driver
    guard let ptx = source.shader.ptx else {
      throw MTLLibraryError(.internal, "kernel '\(source.name)' was not compiled for this device")
    }
    let settled = PtxConstants.settled(ptx, source.shader.values)
    let waiting = context.overlapsDispatches ? PtxOverlap.enabled(settled) : nil
    waits = waiting != nil
    values = ValueArgument.named(in: ptx)
    let (module, whole, partial, maxThreads, sharedSize) = try context.perform {
      if let reason = context.lossReason {
        throw MTLLibraryError(.internal, "kernel '\(source.name)': \(reason)")
      }
      let module = try Self.load(waiting ?? settled, source, driver)
      do {
        func check(_ status: CudaDriver.Status, _ call: String) throws {
          guard status == CudaStatus.success else {
            throw MTLLibraryError(.internal, "kernel '\(source.name)': \(call) gave \(driver.describe(status))")
          }
        }
        for (symbol, value) in source.shader.values {
          var (address, size) = (UInt64(0), 0)
          let status = driver.global(&address, &size, module, symbol)
          // One that the kernel does not read.
          if status == CudaStatus.notFound { continue }
          try check(status, "cuModuleGetGlobal")
          guard let start = value.baseAddress, size == value.count else {
            throw MTLLibraryError(
              .internal, "kernel '\(source.name)': \(symbol) has \(size) bytes, and \(value.count) on the host")
          }
          try check(driver.copyToDevice(address, start, size), "cuMemcpyHtoD")
        }
        var whole: CudaDriver.Pointer?
        try check(driver.function(&whole, module, Tail.entryName), "cuModuleGetFunction")
        guard let whole else { throw MTLLibraryError(.internal, "kernel '\(source.name)' has no entry point") }
        var partial: CudaDriver.Pointer?
        // Without the compiler pass one entry is for both, and a kernel may need whole SIMD groups.
        let status = driver.function(&partial, module, Tail.entryName + "_partial")
        if status != CudaStatus.notFound { try check(status, "cuModuleGetFunction") }
        var (most, shared) = (Int32.max, Int32(0))
        for function in [whole, partial ?? whole] {
          var threads: Int32 = 0
          try check(driver.functionAttribute(&threads, Attribute.maxThreads, function), "cuFuncGetAttribute")
          try check(driver.functionAttribute(&shared, Attribute.sharedSize, function), "cuFuncGetAttribute")
          most = min(most, threads)
        }
        return (module, whole, partial ?? whole, Int(most), Int(shared))
      } catch {
        _ = driver.unloadModule(module)
        throw error
      }
    }
    self.module = module
    self.whole = whole
    self.partial = partial
    self.maxThreads = maxThreads
    staticThreadgroupMemoryLength = sharedSize
  }

  /// What runs blocks of so many threads: in one that is no multiple of a SIMD group's, a SIMD group lacks lanes.
  func function(threads: UInt32) -> CudaDriver.Pointer {
    threads % UInt32(SM_SIMD_WIDTH) == 0 ? whole : partial
  }

  deinit {
    guard context.lossReason == nil else { return }
    context.perform { _ = context.driver.unloadModule(module) }
  }

  private static func load(
    _ ptx: UnsafePointer<CChar>, _ source: SoftFunction, _ driver: CudaDriver
  ) throws -> CudaDriver.Pointer {
    let length = 8192
    let log = UnsafeMutablePointer<CChar>.allocate(capacity: length)
    log.initialize(repeating: 0, count: length)
    defer { log.deallocate() }
    // The buffer for errors, and its size.
    var options: [Int32] = [5, 6]
    let size = UnsafeMutableRawPointer(bitPattern: length)
    var values: [UnsafeMutableRawPointer?] = [UnsafeMutableRawPointer(log), size]
    // Where the kernel says how many threads a threadgroup has at most, a thread has as few registers as let them be
    // there together, and as many threadgroups as have 512 threads: the option of threads a block. That many threads
    // have 128 registers each, what a thread of an Apple GPU can have.
    let threads = min(Int(source.kernel.pointee.maxThreads), Int(SM_MAX_THREADS))
    if threads != 0 {
      options.append(1)
      values.append(UnsafeMutableRawPointer(bitPattern: max(threads, 512 / threads * threads)))
    }
    var module: CudaDriver.Pointer?
    let status = driver.loadModule(&module, ptx, UInt32(options.count), &options, &values)
    guard status == CudaStatus.success, let module else {
      log[length - 1] = 0
      throw MTLLibraryError(
        .compileFailure,
        "kernel '\(source.name)': the NVIDIA driver does not compile it: \(driver.describe(status))\n"
          + String(cString: log))
    }
    return module
  }
}
