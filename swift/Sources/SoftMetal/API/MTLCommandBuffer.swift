/// Encoded work, committed once.
public protocol MTLCommandBuffer: AnyObject {
  var label: String? { get set }
  var status: MTLCommandBufferStatus { get }

  /// An `MTLCommandBufferError` when `status` is `.error`.
  var error: (any Error)? { get }

  /// When the device began and ended the work, in seconds of its clock; 0
  /// before that.
  var gpuStartTime: CFTimeInterval { get }
  var gpuEndTime: CFTimeInterval { get }

  /// A serial encoder: each dispatch sees what the ones before it wrote.
  func makeComputeCommandEncoder() -> (any MTLComputeCommandEncoder)?
  func makeComputeCommandEncoder(dispatchType: MTLDispatchType) -> (any MTLComputeCommandEncoder)?

  /// An encoder that samples counters at its start and its end.
  func makeComputeCommandEncoder(
    descriptor computePassDescriptor: MTLComputePassDescriptor
  ) -> (any MTLComputeCommandEncoder)?

  /// Has `block` called, on a thread of the device's, when the work has ended.
  /// To be called before `commit`.
  func addCompletedHandler(_ block: @escaping MTLCommandBufferHandler)
  func commit()
  func waitUntilCompleted()
}

public typealias MTLCommandBufferHandler = (any MTLCommandBuffer) -> Void
