import CMetalAttention

/// Arguments of an operation that takes one stream or two: K, or K and V; q, or q and K.
protocol StreamArgs {
  var isDual: Bool { get }
}

extension MAKvCacheCopyBatchArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(srcV) } }
extension MAKvCacheCopySeqArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(srcV) } }
extension MAKvCacheAppendArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(srcV) } }
extension MAHadamardQuantizeKvArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(srcV) } }
extension MAHadamardQuantizeKvSeqArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(srcV) } }
extension MAHadamardDequantizeKvArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(packedV) } }
extension MAApplyRopeArgs: StreamArgs { var isDual: Bool { Tensor.isPresent(k) } }

/// The body of an exported operation: reads the arguments, and encodes them
/// into the pass with `body`.
@inline(__always)
func encode<Args: BitwiseCopyable>(
  _ function: StaticString, _ args: UnsafePointer<Args>?, named name: Argument = "args", into pass: UInt32,
  _ body: @escaping (Args, Pass) throws(StatusError) -> PipelineSlot?
) -> Int32 {
  status(function, withV: isDual(args)) { () throws(StatusError) in
    let args = try read(args, name)
    try encode(into: pass) { (pass) throws(StatusError) in
      guard let recording = pass.recording else { return try body(args, pass) }
      return try recording.record(function, args, pass, body)
    }
  }
}

extension Recording {
  /// Records an operation of the C ABI.
  fileprivate func record<Args: BitwiseCopyable>(
    _ function: StaticString, _ args: Args, _ pass: Pass,
    _ body: @escaping (Args, Pass) throws(StatusError) -> PipelineSlot?
  ) throws(StatusError) -> PipelineSlot? {
    let block: ArgumentBlock
    if let dispatch = args as? MAKernelDispatch {
      block = ArgumentBlock(dispatch)
    } else {
      block = try ArgumentBlock(args)
    }
    let encode: Recording.Encode = { (block, pass) throws(StatusError) in
      try body(block.loadUnaligned(as: Args.self), pass)
    }
    return try record(function, withV: (args as? any StreamArgs)?.isDual ?? false, block, encode: encode) {
      () throws(StatusError) in try body(args, pass)
    }
  }
}

private func isDual<Args: BitwiseCopyable>(_ args: UnsafePointer<Args>?) -> Bool {
  guard let args = try? read(args, "args") as? any StreamArgs else { return false }
  return args.isDual
}
