import CSoftMetal
import Synchronization

/// A kernel with what the encoder has to check of it, read once.
final class SoftComputePipelineState: MTLComputePipelineState {
  let name: String
  let maxTotalThreadsPerThreadgroup: Int
  let threadExecutionWidth = Int(SM_SIMD_WIDTH)
  let staticThreadgroupMemoryLength: Int
  let usesMatrices: Bool
  let kernel: UnsafePointer<SmKernel>
  /// Those that exist under the function constants.
  let buffers: ContiguousArray<KernelArgument>
  let threadgroupMemory: ContiguousArray<KernelArgument>

  /// The number of the last command list that retained this pipeline.
  let lastRetainer = Atomic<UInt64>(0)

  /// Keeps the kernel's code loaded.
  private let shader: LoadedShader

  init(_ function: SoftFunction) throws {
    let kernel = function.kernel.pointee
    let staticLength = kernel.staticThreadgroupMemory.map { Int($0.pointee) } ?? 0
    guard staticLength <= SM_MAX_THREADGROUP_MEMORY else {
      throw MTLLibraryError(
        .compileFailure,
        "kernel '\(function.name)' has \(staticLength) bytes of threadgroup variables; "
          + "the limit is \(SM_MAX_THREADGROUP_MEMORY)")
    }
    let arguments = UnsafeBufferPointer(start: kernel.arguments, count: Int(kernel.argumentCount))
      .filter { argument in argument.present.map { $0() != 0 } ?? true }
    let outOfRange = arguments.first { $0.index >= SM_MAX_BUFFERS }
    if let outOfRange {
      throw MTLLibraryError(
        .compileFailure,
        "kernel '\(function.name)' has an argument of index \(outOfRange.index); "
          + "the highest index is \(SM_MAX_BUFFERS - 1)")
    }
    name = function.name
    shader = function.shader
    self.kernel = function.kernel
    maxTotalThreadsPerThreadgroup = min(Int(kernel.maxThreads), Int(SM_MAX_THREADS))
    staticThreadgroupMemoryLength = staticLength
    usesMatrices = kernel.usesMatrices != 0
    buffers = Self.requirements(of: Int(SM_ARGUMENT_BUFFER), in: arguments)
    threadgroupMemory = Self.requirements(of: Int(SM_ARGUMENT_THREADGROUP), in: arguments)
  }

  private static func requirements(of kind: Int, in arguments: [SmArgument]) -> ContiguousArray<KernelArgument> {
    ContiguousArray(
      arguments.lazy.filter { Int($0.kind) == kind }.map { argument in
        KernelArgument(
          index: Int(argument.index), minimumLength: Int(clamping: argument.minimumLength),
          alignment: max(1, Int(argument.alignment)))
      })
  }
}
