/// Runs command buffers in the order of their commit.
public protocol MTLCommandQueue: AnyObject {
  var label: String? { get set }
  func makeCommandBuffer() -> (any MTLCommandBuffer)?

  /// A command buffer that does not keep the resources it uses alive.
  func makeCommandBufferWithUnretainedReferences() -> (any MTLCommandBuffer)?
}
