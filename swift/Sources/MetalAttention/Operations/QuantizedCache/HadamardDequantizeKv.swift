import CMetalAttention

/// `ma_hadamard_dequantize_kv`: tokens of a quantized cache, K alone or K and
/// V, to head-major [batch, num_kv_heads, n_tokens, head_dim].
enum HadamardDequantizeKv {
  static func encode(_ args: MAHadamardDequantizeKvArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let format = try HadamardFormat(bits: params.codebook_bits, packing: args.packing)
    let (k, v) = try HadamardStream.both(
      .result, (args.outK, args.packedK, args.normsK, format), (args.outV, args.packedV, args.normsV, format), in: pass)
    params.out_dtype = try Derived.fill(
      params.out_dtype, "out_dtype", k.values.dtype.rawValue, "the dtype of \(k.values.name)")
    guard
      let cache = try HadamardCache(
        params, k, v, batch: args.batch, count: params.n_tokens, from: params.read_pos_start, "read_pos_start")
    else { return nil }
    let out = HeadMajor(nHeads: cache.heads, capacity: params.n_tokens, rowSize: params.head_dim).elements
    func formula() -> Sentence {
      "\(cache.headsFormula) x \(arg: "n_tokens") \(params.n_tokens) x \(arg: "head_dim") \(params.head_dim)"
    }
    try k.values.requireRoom(for: out, formula())
    try v?.values.requireRoom(for: out, formula())

    // The batch is laid out as further heads.
    params.num_kv_heads = cache.heads
    let dispatch = HadamardDispatch(
      operation: .dequantizeKv, task: .decode, cache: cache, k: k, v: v, values: (out.value, 0..<out.value),
      position: params.read_pos_start, count: params.n_tokens)
    return try dispatch.encode(params, into: pass)
  }
}
