import CMetalAttention

/// `ma_hadamard_quantize_kv_seq`: tokens [tokens, num_kv_heads, head_dim] into
/// a quantised cache, K alone or K and V.
enum HadamardQuantizeKvSeq {
  static func encode(_ args: MAHadamardQuantizeKvSeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let k = try HadamardStream(
      values: (args.srcK, .srcK), packed: (args.packedK, .packedK), norms: (args.normsK, .normsK), in: pass)
    let v = try HadamardStream.optional(
      values: (args.srcV, .srcV), packed: (args.packedV, .packedV), norms: (args.normsV, .normsV), in: pass)
    try k.values.requireDType(.f32)
    try v?.values.requireDType(.f32)
    let params = args.params
    let format = try HadamardFormat(bits: params.codebook_bits, packing: args.packing)
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    if params.num_kv_heads == 0 || params.head_dim == 0 || params.n_tokens == 0 { return nil }

    let cache = try HadamardCache(
      format, headDim: params.head_dim, nKvHeads: params.num_kv_heads, capacity: params.cache_capacity,
      scaleFactorD512: params.scale_factor_d512)
    _ = try CacheRange.end(
      of: params.n_tokens, "n_tokens", from: params.write_pos_start, "write_pos_start",
      capacity: params.cache_capacity, "cache_capacity", isRing: isRing)
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
