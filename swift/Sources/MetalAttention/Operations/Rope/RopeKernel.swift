/// A kernel of `apply_rope.metal`: one for each pair of dtypes.
enum RopeKernel {
  static let family = KernelFamily(
    sources: [("apply_rope.metal", table.names)],
    // `interleaved`, `has_k`, `has_positions`, `has_rest`, `is_wide`.
    constants: [400, 401, 402, 403, 404],
    dtypes: dtypes)

  static let dtypes: [DType] = [.f32, .f16, .bf16]

  /// By the dtype read and the one written.
  private static let table = KernelTable(dtypes.count, dtypes.count) { place in
    let (from, to) = (dtypes[place[0]], dtypes[place[1]])
    return from == to ? "apply_rope_\(from)" : "apply_rope_\(from)_to_\(to)"
  }

  private static let indices = table.indices

  /// The index in `BuiltInKernel.all` of the kernel for a pair of dtypes.
  @inline(__always)
  static func index(_ input: Tensor, _ output: Tensor) throws(StatusError) -> Int {
    guard let from = dtypes.firstIndex(of: input.dtype) else { throw unsupported(input) }
    guard let to = dtypes.firstIndex(of: output.dtype), let index = indices[from, to] else { throw unsupported(output) }
    return index
  }

  @inline(never)
  private static func unsupported(_ tensor: Tensor) -> StatusError {
    StatusError(StatusCode.unsupported, "\(tensor.name) is \(tensor.dtype); it is \(family.dtypeList)")
  }
}
