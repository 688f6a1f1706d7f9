/// A kernel of `apply_rope.metal`: one for each pair of dtypes.
enum RopeKernel {
  static let family = KernelFamily(
    name: "rope",
    sources: [("apply_rope.metal", names)],
    // `interleaved`, `has_k`, `has_positions`.
    constants: [400, 401, 402],
    dtypes: dtypes,
    operations: [.applyRope],
    tensors: [.q, .outQ, .k, .outK, .positions])

  static let dtypes: [DType] = [.f32, .f16, .bf16]

  /// Heads that a thread turns, as in the shader.
  static let headsPerThread: UInt32 = 4

  /// The entry points, by the dtype read and then the one written.
  private static let names: [String] = dtypes.flatMap { from in
    dtypes.map { to in from == to ? "apply_rope_\(from)" : "apply_rope_\(from)_to_\(to)" }
  }

  /// Of `names`, in `BuiltInKernel.all`.
  private static let indices = KernelFamily.indices(of: names)

  /// The index in `BuiltInKernel.all` of the kernel for a pair of dtypes.
  @inline(__always)
  static func index(_ input: Tensor, _ output: Tensor) throws(StatusError) -> Int {
    Int(indices[dtypes.count * (try position(input)) + (try position(output))])
  }

  @inline(__always)
  private static func position(_ tensor: Tensor) throws(StatusError) -> Int {
    guard let position = dtypes.firstIndex(of: tensor.dtype) else {
      throw StatusError(StatusCode.unsupported, "\(tensor.name) is \(tensor.dtype); it is \(family.dtypeList)")
    }
    return position
  }
}
