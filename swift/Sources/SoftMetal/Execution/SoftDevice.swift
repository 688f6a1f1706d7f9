import CSoftMetal
import Synchronization

/// A device that runs kernels on the CPU or on an NVIDIA GPU.
final class SoftDevice: MTLDevice {
  private static let count = Atomic<UInt64>(0)

  let name: String
  let registryID = SoftDevice.count.wrappingAdd(1, ordering: .relaxed).newValue
  var hasUnifiedMemory: Bool { gpu == nil }
  let maxThreadsPerThreadgroup = MTLSizeMake(Int(SM_MAX_THREADS), Int(SM_MAX_THREADS), Int(SM_MAX_THREADS))
  let maxThreadgroupMemoryLength = Int(SM_MAX_THREADGROUP_MEMORY)
  /// Threads, or multiprocessors, that threadgroups are spread over.
  let coreCount: Int
  private let timestamp = SoftTimestamp()
  private let memory: DeviceMemory
  /// Nil for the CPU.
  private let gpu: CudaContext?
  private let makeRunner: () -> (any CommandRunner)?
  private let order: ExecutionOrder
  private let checksLockstep: Bool
  private let samplesDispatches: Bool
  let hasMatrixUnits: Bool

  /// - Parameter gpu: what runs the kernels; nil for the CPU.
  init(settings: DeviceSettings, gpu: CudaContext? = nil) throws(DeviceError) {
    self.gpu = gpu
    if let gpu {
      makeRunner = { CudaRunner(gpu, timeLimit: settings.timeLimit) }
      coreCount = gpu.multiprocessors
      name = "SoftMetal (\(gpu.name))"
    } else {
      let workers = try WorkerPool(threads: settings.threads, timeLimit: settings.timeLimit)
      makeRunner = { ProcessorRunner(workers) }
      coreCount = settings.threads
      name = "SoftMetal (\(Processor.name), \(settings.threads) \(settings.threads == 1 ? "thread" : "threads"))"
    }
    order = settings.order
    checksLockstep = settings.checksLockstep
    memory = DeviceMemory(
      guardsBuffers: settings.guardsBuffers, zeroesPrivate: settings.zeroesPrivate, failure: settings.failure,
      mapping: gpu)
    samplesDispatches = settings.samplesDispatches
    hasMatrixUnits = settings.matrixUnits ?? (gpu != nil)
  }

  var lossReason: String? { gpu?.lossReason }
  var maxBufferLength: Int { memory.maxLength }
  var recommendedMaxWorkingSetSize: UInt64 { UInt64(gpu?.totalMemory ?? Processor.physicalMemory / 4 * 3) }
  var currentAllocatedSize: Int { memory.allocatedSize }

  /// Every family's features run on a CPU.
  func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool { true }

  var counterSets: [any MTLCounterSet]? { [timestamp] }

  /// Where an Apple GPU does, or between dispatches, as other GPUs do.
  func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool {
    samplingPoint == .atStageBoundary || samplingPoint == .atDispatchBoundary && samplesDispatches
  }

  func makeCounterSampleBuffer(
    descriptor: MTLCounterSampleBufferDescriptor
  ) throws -> any MTLCounterSampleBuffer {
    try SoftCounterSampleBuffer(descriptor, isOfDispatches: samplesDispatches)
  }

  func makeCommandQueue() -> (any MTLCommandQueue)? {
    makeRunner().flatMap { QueueExecutor(runner: $0, order: order, mapping: gpu) }
      .map { SoftCommandQueue(memory: memory, executor: $0) }
  }

  func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)? {
    guard !memory.fails(.buffer) else { return nil }
    return options.storageMode.flatMap { SoftBuffer(length: length, storageMode: $0, memory: memory) }
  }

  func makeBuffer(
    bytes pointer: UnsafeRawPointer, length: Int, options: MTLResourceOptions
  ) -> (any MTLBuffer)? {
    guard options.storageMode != .private else { return nil }
    let buffer = makeBuffer(length: length, options: options)
    buffer?.contents().copyMemory(from: pointer, byteCount: length)
    return buffer
  }

  func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions,
    deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
  ) -> (any MTLBuffer)? {
    guard let mode = options.storageMode, mode != .private else { return nil }
    return SoftBuffer(
      noCopy: pointer, length: length, storageMode: mode, memory: memory, deallocator: deallocator)
  }

  func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary {
    let options = options ?? MTLCompileOptions()
    guard gpu == nil else { return try SoftLibrary(source: source, options: .init(options), for: .nvptx) }
    return try SoftLibrary(source: source, options: .init(options), checksLockstep: checksLockstep)
  }

  func makeComputePipelineState(
    function computeFunction: any MTLFunction
  ) throws -> any MTLComputePipelineState {
    guard let function = computeFunction as? SoftFunction else {
      throw MTLLibraryError(.unsupported, "function '\(computeFunction.name)' is not SoftMetal's")
    }
    guard !memory.fails(.pipeline) else {
      throw MTLLibraryError(.internal, "function '\(function.name)': no memory for its pipeline")
    }
    return try SoftComputePipelineState(function, gpu: gpu)
  }

  func makeComputePipelineState(
    function computeFunction: any MTLFunction, options: MTLPipelineOption,
    reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
  ) throws -> any MTLComputePipelineState {
    let state = try makeComputePipelineState(function: computeFunction)
    if options.contains(.bindingInfo), let state = state as? SoftComputePipelineState {
      reflection?.pointee = MTLComputePipelineReflection(bindings: state.bindings)
    }
    return state
  }
}

extension MTLResourceOptions {
  /// Nil for those that a buffer cannot have.
  fileprivate var storageMode: MTLStorageMode? {
    let mode = MTLStorageMode(rawValue: rawValue >> 4 & 0xF)
    return mode == .memoryless ? nil : mode
  }
}
