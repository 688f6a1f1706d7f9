import CMetalAttention

/// Head vectors and the quantised cache that they go to or come from: K, V, or
/// the only one.
struct HadamardStream {
  typealias Argument = (tensor: MATensor, name: TensorName)

  /// The vectors: the source of an encoding, the result of a decoding.
  let values: Tensor
  let packed: Tensor
  let norms: Tensor

  init(values: Argument, packed: Argument, norms: Argument, in pass: Pass) throws(StatusError) {
    self.values = try Tensor(values.tensor, values.name, in: pass)
    self.packed = try Tensor(packed.tensor, packed.name, in: pass)
    self.norms = try Tensor(norms.tensor, norms.name, in: pass)
    try self.packed.requireDType(.u8)
    try self.norms.requireDType(.f32)
  }

  /// The second stream of a call that takes K alone or K and V; nil when all
  /// of its tensors are absent.
  static func optional(
    values: Argument, packed: Argument, norms: Argument, in pass: Pass
  ) throws(StatusError) -> HadamardStream? {
    let arguments = [values, packed, norms]
    if !arguments.contains(where: { Tensor.isPresent($0.tensor) }) { return nil }
    for argument in arguments {
      try require(
        Tensor.isPresent(argument.tensor), StatusCode.invalidArgument,
        "\(argument.name) is absent; give all of \(values.name), \(packed.name) and \(norms.name), or none")
    }
    return try HadamardStream(values: values, packed: packed, norms: norms, in: pass)
  }
}
