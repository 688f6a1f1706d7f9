import CMetalAttention

/// `ma_hadamard_dequantize_kv`: tokens of a quantised cache, K alone or K and
/// V, to head-major [num_kv_heads, n_tokens, head_dim].
enum HadamardDequantizeKv {
  static func encode(_ args: MAHadamardDequantizeKvArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let (k, v) = try HadamardStream.both(
      .result, (args.outK, args.packedK, args.normsK), (args.outV, args.packedV, args.normsV), in: pass)
    let params = args.params
    try requireDType(of: k.values, params)
    if let v { try requireDType(of: v.values, params) }
    guard
      let cache = try HadamardCache(
        params, packing: args.packing, count: params.n_tokens, from: params.read_pos_start, "read_pos_start")
    else { return nil }
    let out = HeadMajor(nHeads: params.num_kv_heads, capacity: params.n_tokens, rowSize: params.head_dim).elements
    func formula() -> String {
      "num_kv_heads \(params.num_kv_heads) x n_tokens \(params.n_tokens) x head_dim \(params.head_dim)"
    }
    try k.values.requireRoom(for: out, formula())
    try v?.values.requireRoom(for: out, formula())

    let dispatch = HadamardDispatch(
      operation: .dequantizeKv, task: .decode, cache: cache, k: k, v: v, values: (out.value, 0..<out.value),
      position: params.read_pos_start, count: params.n_tokens)
    return try dispatch.encode(params, into: pass)
  }

  /// One dispatch writes both results in the type that `out_dtype` states.
  private static func requireDType(
    of out: Tensor, _ params: HadamardDequantizeParams
  ) throws(StatusError) {
    switch out.dtype {
    case .f32, .f16, .bf16: break
    default: throw StatusError(StatusCode.unsupported, "\(out.name) is \(out.dtype); it is f32, f16 or bf16")
    }
    try require(
      out.dtype.rawValue == params.out_dtype, StatusCode.invalidArgument,
      "\(out.name) is \(out.dtype), dtype \(out.dtype.rawValue), but out_dtype is \(params.out_dtype)")
  }
}
