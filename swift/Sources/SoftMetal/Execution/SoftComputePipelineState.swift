import CSoftMetal
import Synchronization

/// A kernel with what the encoder has to check of it, read once.
final class SoftComputePipelineState: MTLComputePipelineState {
  let name: String
  let maxTotalThreadsPerThreadgroup: Int
  let threadExecutionWidth = Int(SM_SIMD_WIDTH)
  let staticThreadgroupMemoryLength: Int
  let simdgroups: KernelSIMDGroups
  let kernel: UnsafePointer<SmKernel>
  /// The kernel with every thread by itself, where results are compared.
  var referenceKernel: UnsafePointer<SmKernel>? { reference?.kernel }
  /// Those that exist under the function constants.
  let buffers: ContiguousArray<KernelArgument>
  let threadgroupMemory: ContiguousArray<KernelArgument>

  let bindings: [SoftBinding]

  /// How the kernel runs, and why so where it is not as a GPU would.
  var executor: String {
    if gpuKernel != nil { return "PTX" }
    return switch Int(kernel.pointee.execution) {
    case SM_EXECUTION_LOOP: "loop"
    case SM_EXECUTION_VECTORS: "vectors"
    default: "threads (\(shader.whyThreads))"
    }
  }

  /// The number of the last command list that retained this pipeline.
  let lastRetainer = Atomic<UInt64>(0)

  /// Keeps the kernel's code loaded.
  private let shader: LoadedShader
  private let reference: (shader: LoadedShader, kernel: UnsafePointer<SmKernel>)?

  /// The kernel's code where a GPU runs it.
  let gpuKernel: CudaKernel?

  init(_ function: SoftFunction, gpu context: CudaContext? = nil) throws {
    try function.requireConstants()
    let gpuKernel = try context.map { try CudaKernel(function, $0) }
    let kernel = function.kernel.pointee
    let staticLength =
      gpuKernel?.staticThreadgroupMemoryLength ?? kernel.staticThreadgroupMemory.map { Int($0.pointee) } ?? 0
    guard staticLength <= SM_MAX_THREADGROUP_MEMORY else {
      throw MTLLibraryError(
        .compileFailure,
        "kernel '\(function.name)' has \(staticLength) bytes of threadgroup variables; "
          + "the limit is \(SM_MAX_THREADGROUP_MEMORY)")
    }
    let bindings = Self.bindings(of: kernel)
    let outOfRange = bindings.first { $0.index >= SM_MAX_BUFFERS }
    if let outOfRange {
      throw MTLLibraryError(
        .compileFailure,
        "kernel '\(function.name)' has an argument of index \(outOfRange.index); "
          + "the highest index is \(SM_MAX_BUFFERS - 1)")
    }
    name = function.name
    shader = function.shader
    reference = function.reference
    self.kernel = function.kernel
    self.gpuKernel = gpuKernel
    let most = Int(SM_MAX_THREADS)
    maxTotalThreadsPerThreadgroup = min(
      kernel.maxThreads == 0 ? most : Int(kernel.maxThreads), most, gpuKernel?.maxThreads ?? most)
    staticThreadgroupMemoryLength = staticLength
    simdgroups = KernelSIMDGroups(rawValue: Int(kernel.simdgroups)) ?? .any
    self.bindings = bindings
    buffers = Self.requirements(of: .buffer, in: bindings)
    threadgroupMemory = Self.requirements(of: .threadgroupMemory, in: bindings)
  }

  /// The arguments that exist under the function constants.
  private static func bindings(of kernel: SmKernel) -> [SoftBinding] {
    let count = Int(kernel.argumentCount)
    let arguments = UnsafeBufferPointer(start: kernel.arguments, count: count)
    let names = UnsafeBufferPointer(start: kernel.argumentNames, count: count)
    return zip(arguments, names).compactMap { argument, name in
      guard argument.present.map({ $0() != 0 }) ?? true else { return nil }
      return SoftBinding.make(argument, name: name.map { String(cString: $0) } ?? "")
    }
  }

  private static func requirements(
    of type: MTLBindingType, in bindings: [SoftBinding]
  ) -> ContiguousArray<KernelArgument> {
    ContiguousArray(
      bindings.lazy.filter { $0.type == type }.map { binding in
        KernelArgument(index: binding.index, minimumLength: binding.minimumLength, alignment: binding.alignment)
      })
  }
}
