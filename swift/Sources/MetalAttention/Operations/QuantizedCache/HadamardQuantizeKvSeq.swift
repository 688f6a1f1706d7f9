import CMetalAttention

/// `ma_hadamard_quantize_kv_seq`: tokens [batch, n_src_tokens, num_kv_heads, head_dim]
/// into a quantized cache, K alone or K and V.
enum HadamardQuantizeKvSeq {
  static func encode(_ args: MAHadamardQuantizeKvSeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let (k, v) = try HadamardStream.both(
      .source, (args.srcK, args.packedK, args.normsK), (args.srcV, args.packedV, args.normsV), in: pass)
    let params = args.params
    guard
      let cache = try HadamardCache(
        params, packing: args.packing, batch: args.batch, count: params.n_tokens, from: params.write_pos_start,
        "write_pos_start")
    else { return nil }
    try CacheRange.requireSource(
      params.n_tokens, "n_tokens", from: params.src_tok_offset, "src_tok_offset", of: params.n_src_tokens,
      "n_src_tokens")
    let token = Count(params.num_kv_heads) * params.head_dim
    let source = token * params.n_src_tokens * args.batch
    func formula() -> Sentence {
      "\(cache.headsFormula) x \(arg: "n_src_tokens") \(params.n_src_tokens) x \(arg: "head_dim") \(params.head_dim)"
    }
    try k.values.requireRoom(for: source, formula())
    try v?.values.requireRoom(for: source, formula())

    let skipped = UInt64(params.n_src_tokens - params.src_tok_offset - params.n_tokens)
    let touched = (UInt64(params.src_tok_offset) * token.value)..<(source.value - skipped * token.value)
    let dispatch = HadamardDispatch(
      operation: .hadamardQuantizeKvSeq, task: .sequence, cache: cache, k: k, v: v,
      values: (source.value, touched),
      position: params.write_pos_start, count: params.n_tokens, batch: args.batch)
    return try dispatch.encode(params, into: pass)
  }
}
