/// A queue with a thread of its own. The end of the queue waits for all work
/// committed to it.
final class SoftCommandQueue: MTLCommandQueue {
  var label: String?
  let memory: DeviceMemory
  let executor: QueueExecutor

  init(memory: DeviceMemory, executor: QueueExecutor) {
    self.memory = memory
    self.executor = executor
  }

  deinit {
    executor.close()
  }

  func makeCommandBuffer() -> (any MTLCommandBuffer)? {
    makeCommandBuffer(retainsBuffers: true)
  }

  func makeCommandBufferWithUnretainedReferences() -> (any MTLCommandBuffer)? {
    makeCommandBuffer(retainsBuffers: false)
  }

  private func makeCommandBuffer(retainsBuffers: Bool) -> SoftCommandBuffer? {
    memory.fails(.pass) ? nil : SoftCommandBuffer(queue: self, retainsBuffers: retainsBuffers)
  }
}
