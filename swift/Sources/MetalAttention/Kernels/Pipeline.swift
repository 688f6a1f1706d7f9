/// A compiled kernel with its function constants.
final class Pipeline {
  /// The registry that made it, and by that its device. Only compared.
  let registry: ObjectIdentifier
  let kernel: String
  let state: any MTLComputePipelineState
  let signature: KernelSignature
  let maxTotalThreadsPerThreadgroup: UInt32
  /// Bytes.
  let staticThreadgroupMemoryLength: UInt32
  /// The number of the last pass that keeps it; 0 for none. Guarded by the lock of `HandleSpace`.
  var lastKeeper: UInt64 = 0

  init(
    registry: KernelRegistry, kernel: String, state: any MTLComputePipelineState,
    reflection: MTLComputePipelineReflection?
  ) {
    self.registry = ObjectIdentifier(registry)
    self.kernel = kernel
    self.state = state
    signature = KernelSignature(reflection?.bindings ?? [])
    maxTotalThreadsPerThreadgroup = UInt32(clamping: state.maxTotalThreadsPerThreadgroup)
    staticThreadgroupMemoryLength = UInt32(clamping: state.staticThreadgroupMemoryLength)
  }
}
