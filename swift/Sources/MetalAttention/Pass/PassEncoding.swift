/// Encodes one operation into an open pass.
///
/// `body` checks the operation and encodes it, under the lock that keeps all
/// it resolves alive. Where it lacks a pipeline it encodes nothing and returns
/// the slot; the pipeline is compiled without the lock, and `body` runs again
/// from the start, since anything may have been released meanwhile.
@inline(__always)
func encode(
  into handle: UInt32, _ body: (Pass) throws(StatusError) -> PipelineSlot?
) throws(StatusError) {
  while true {
    let missing = try HandleSpace.lock.withLock { () throws(StatusError) -> (KernelRegistry, PipelineSlot)? in
      let pass = try HandleSpace.passes.resolve(handle, "pass")
      try pass.requireEncoding()
      guard let slot = try body(pass) else { return nil }
      return (pass.device.registry, slot)
    }
    guard let (registry, slot) = missing else { return }
    try registry.prepare(slot)
  }
}
