/// A compiled kernel with its function constants.
final class Pipeline {
  /// The registry that made it, and by that its device. Only compared.
  let registry: ObjectIdentifier
  let kernel: String
  let state: any MTLComputePipelineState
  let maxTotalThreadsPerThreadgroup: UInt32
  /// Bytes.
  let staticThreadgroupMemoryLength: UInt32

  init(registry: KernelRegistry, kernel: String, state: any MTLComputePipelineState) {
    self.registry = ObjectIdentifier(registry)
    self.kernel = kernel
    self.state = state
    maxTotalThreadsPerThreadgroup = UInt32(clamping: state.maxTotalThreadsPerThreadgroup)
    staticThreadgroupMemoryLength = UInt32(clamping: state.staticThreadgroupMemoryLength)
  }
}
