/// A kernel ready to be dispatched.
public protocol MTLComputePipelineState: AnyObject {
  var maxTotalThreadsPerThreadgroup: Int { get }

  /// Threads of a SIMD group.
  var threadExecutionWidth: Int { get }

  /// Bytes of the kernel's own `threadgroup` variables.
  var staticThreadgroupMemoryLength: Int { get }
}
