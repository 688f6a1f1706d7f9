import CMetalAttention

/// `ma_hadamard_dequantize_kv`: tokens of a quantized cache, K alone or K and
/// V, to head-major [batch, num_kv_heads, n_tokens, head_dim].
enum HadamardDequantizeKv {
  static func encode(_ args: MAHadamardDequantizeKvArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let (k, v) = try HadamardStream.both(
      .result, (args.outK, args.packedK, args.normsK), (args.outV, args.packedV, args.normsV), in: pass)
    var params = args.params
    params.out_dtype = try outDType(k, v, given: params.out_dtype)
    guard
      let cache = try HadamardCache(
        params, packing: args.packing, batch: args.batch, count: params.n_tokens, from: params.read_pos_start,
        "read_pos_start")
    else { return nil }
    let out = HeadMajor(nHeads: cache.packed.nHeads, capacity: params.n_tokens, rowSize: params.head_dim).elements
    func formula() -> Sentence {
      "\(cache.headsFormula) x \(arg: "n_tokens") \(params.n_tokens) x \(arg: "head_dim") \(params.head_dim)"
    }
    try k.values.requireRoom(for: out, formula())
    try v?.values.requireRoom(for: out, formula())

    // The batch is laid out as further heads.
    params.num_kv_heads = cache.packed.nHeads
    let dispatch = HadamardDispatch(
      operation: .dequantizeKv, task: .decode, cache: cache, k: k, v: v, values: (out.value, 0..<out.value),
      position: params.read_pos_start, count: params.n_tokens)
    return try dispatch.encode(params, into: pass)
  }

  /// The type that one dispatch writes all results in.
  /// - Parameter given: 0, or the same.
  private static func outDType(
    _ k: HadamardStream, _ v: HadamardStream?, given: UInt32
  ) throws(StatusError) -> UInt32 {
    let out = k.values.dtype
    try require(
      [.f32, .f16, .bf16].contains(out), StatusCode.unsupported,
      "\(k.values.name) is \(out); it is f32, f16 or bf16")
    if let v {
      try require(
        v.values.dtype == out, StatusCode.invalidArgument,
        "\(v.values.name) is \(v.values.dtype), \(k.values.name) is \(out); one dispatch writes both in one dtype")
    }
    return try Derived.fill(given, "out_dtype", out.rawValue, "the dtype of \(k.values.name)")
  }
}
