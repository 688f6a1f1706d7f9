import CSoftMetal
import Glibc

/// Runs a dispatch once more with every thread by itself, and compares what it leaves in the buffers of its list.
struct Comparison {
  private let kernel: UnsafePointer<SmKernel>
  private let buffers: [SoftBuffer]
  private let before: [[UInt8]]

  /// Keeps the buffers' contents; to be made before the dispatch runs.
  init(with kernel: UnsafePointer<SmKernel>, _ retained: ContiguousArray<AnyObject>) {
    self.kernel = kernel
    buffers = retained.compactMap { $0 as? SoftBuffer }
    before = buffers.map(Self.contents)
  }

  /// The error of a kernel that leaves something else; what it left stays.
  func difference(
    after dispatch: SmDispatch, of pipeline: SoftComputePipelineState, _ workers: WorkerPool
  ) -> MTLCommandBufferError? {
    let results = buffers.map(Self.contents)
    defer { restore(results) }
    restore(before)
    var dispatch = dispatch
    dispatch.kernel = kernel
    guard case .ok = workers.run(&dispatch) else {
      return MTLCommandBufferError(.internal, "kernel '\(pipeline.name)' does not end well with every thread by itself")
    }
    for (buffer, result) in zip(buffers, results) {
      guard
        let place = result.indices.first(where: {
          result[$0] != buffer.pointer.load(fromByteOffset: $0, as: UInt8.self)
        })
      else { continue }
      return MTLCommandBufferError(
        .internal,
        "kernel '\(pipeline.name)': \(name(of: buffer, dispatch, pipeline)) differs from byte \(place) of it on when every "
          + "thread runs by itself: the kernel relies on lanes in lockstep, or on an order of threads")
    }
    return nil
  }

  private static func contents(of buffer: SoftBuffer) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: buffer.pointer, count: buffer.length))
  }

  private func restore(_ contents: [[UInt8]]) {
    for (buffer, bytes) in zip(buffers, contents) {
      bytes.withUnsafeBytes { bytes in
        if let start = bytes.baseAddress { buffer.pointer.copyMemory(from: start, byteCount: bytes.count) }
      }
    }
  }

  /// By the arguments that lie in it.
  private func name(of buffer: SoftBuffer, _ dispatch: SmDispatch, _ pipeline: SoftComputePipelineState) -> String {
    let range = UInt(bitPattern: buffer.pointer)..<UInt(bitPattern: buffer.pointer) + UInt(buffer.length)
    let names = withUnsafeBytes(of: dispatch.buffers) { bytes in
      let addresses = bytes.bindMemory(to: UInt.self)
      return pipeline.bindings.filter { $0.type == .buffer && range.contains(addresses[$0.index]) }
        .map { "buffer(\($0.index)) \($0.name)" }
    }
    return names.joined(separator: ", ")
  }
}
