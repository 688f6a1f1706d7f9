import CMetalAttention

/// Head vectors and the quantized cache that they go to or come from: K, V, or
/// the only one.
struct HadamardStream {
  typealias Arguments = (values: MATensor, packed: MATensor, norms: MATensor, format: HadamardFormat)
  private typealias Names = (values: TensorName, packed: TensorName, norms: TensorName)

  /// Role of the vectors in a call.
  enum Role {
    case source
    case result
  }

  let values: Tensor
  let packed: Tensor
  let norms: Tensor
  let format: HadamardFormat

  private init(_ arguments: Arguments, _ names: Names, in pass: Pass) throws(StatusError) {
    values = try Tensor(arguments.values, names.values, in: pass)
    packed = try Tensor(arguments.packed, names.packed, in: pass)
    norms = try Tensor(arguments.norms, names.norms, in: pass)
    format = arguments.format
    try packed.requireDType(.u8)
    try norms.requireDType(.f32)
  }

  /// The streams of a call that takes K alone or K and V: nil for V when all of
  /// its tensors are absent. Their vectors are f32, f16 or bf16, all in one.
  static func both(
    _ role: Role, _ k: Arguments, _ v: Arguments, in pass: Pass
  ) throws(StatusError) -> (HadamardStream, HadamardStream?) {
    let isSource = role == .source
    let first = try HadamardStream(k, (isSource ? .srcK : .outK, .packedK, .normsK), in: pass)
    let second = try optional(v, (isSource ? .srcV : .outV, .packedV, .normsV), in: pass)
    let values = first.values
    try require(
      [.f32, .f16, .bf16].contains(values.dtype), StatusCode.unsupported,
      "\(values.name) is \(values.dtype); it is f32, f16 or bf16")
    if let other = second?.values {
      try require(
        other.dtype == values.dtype, StatusCode.unsupported,
        "\(other.name) is \(other.dtype), \(values.name) is \(values.dtype); one dispatch has both in one dtype")
    }
    return (first, second)
  }

  private static func optional(
    _ arguments: Arguments, _ names: Names, in pass: Pass
  ) throws(StatusError) -> HadamardStream? {
    let all = [(arguments.values, names.values), (arguments.packed, names.packed), (arguments.norms, names.norms)]
    if !all.contains(where: { Tensor.isPresent($0.0) }) { return nil }
    for (tensor, name) in all {
      try require(
        Tensor.isPresent(tensor), StatusCode.invalidArgument,
        "\(name) is absent; give all of \(names.values), \(names.packed) and \(names.norms), or none")
    }
    return try HadamardStream(arguments, names, in: pass)
  }
}
