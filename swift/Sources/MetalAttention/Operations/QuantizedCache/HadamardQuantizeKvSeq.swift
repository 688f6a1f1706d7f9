import CMetalAttention

/// `ma_hadamard_quantize_kv_seq`: tokens [tokens, num_kv_heads, head_dim] into
/// a quantised cache, K alone or K and V.
enum HadamardQuantizeKvSeq {
  static func encode(_ args: MAHadamardQuantizeKvSeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let (k, v) = try HadamardStream.both(
      .source, (args.srcK, args.packedK, args.normsK), (args.srcV, args.packedV, args.normsV), in: pass)
    let params = args.params
    guard
      let cache = try HadamardCache(
        params, packing: args.packing, count: params.n_tokens, from: params.write_pos_start, "write_pos_start")
    else { return nil }
    let sourceEnd = try CacheRange.sum(params.src_tok_offset, "src_tok_offset", params.n_tokens, "n_tokens")
    let token = Count(params.num_kv_heads) * params.head_dim
    let source = token * sourceEnd
    func formula() -> String {
      "(src_tok_offset \(params.src_tok_offset) + n_tokens \(params.n_tokens)) x num_kv_heads \(params.num_kv_heads)"
        + " x head_dim \(params.head_dim)"
    }
    try k.values.requireRoom(for: source, formula())
    try v?.values.requireRoom(for: source, formula())

    let dispatch = HadamardDispatch(
      operation: .hadamardQuantizeKvSeq, task: .sequence, cache: cache, k: k, v: v,
      values: (source.value, (UInt64(params.src_tok_offset) * token.value)..<source.value),
      position: params.write_pos_start, count: params.n_tokens)
    return try dispatch.encode(params, into: pass)
  }
}
