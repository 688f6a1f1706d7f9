import CMetalAttention

/// `ma_hadamard_quantize_kv_seq`: tokens [batch, n_src_tokens, num_kv_heads, head_dim]
/// into a quantized cache or pages, K alone or K and V, each in a format of its own.
enum HadamardQuantizeKvSeq {
  static func encode(_ args: MAHadamardQuantizeKvSeqArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let format = try HadamardFormat(bits: params.codebook_bits, packing: args.packing)
    let formatOfV = try ownFormatOfV(args) ?? format
    let (k, v) = try HadamardStream.both(
      .source, (args.srcK, args.packedK, args.normsK, format), (args.srcV, args.packedV, args.normsV, formatOfV),
      in: pass)
    try require(
      v != nil || args.packingV | args.bitsV == 0, StatusCode.invalidArgument,
      "\(arg: "packingV") is \(args.packingV) and \(arg: "bitsV") \(args.bitsV), but \(TensorName.srcV) is absent; both are 0 then"
    )
    params.codebook_bits_v = try Derived.fill(
      params.codebook_bits_v, "codebook_bits_v", v?.format.bits ?? format.bits, "the bits of V's codes")
    let positions = try TokenPositions(
      args.positions, perBatch: params.positions_per_batch, "positions_per_batch", batch: args.batch,
      nTokens: params.n_tokens, "n_tokens", in: pass)
    try require(
      positions == nil || params.write_pos_start == 0, StatusCode.invalidArgument,
      "\(arg: "write_pos_start") is \(params.write_pos_start), but \(TensorName.positions) say where tokens go; it is 0 then"
    )
    params.has_positions = try Derived.fill(
      params.has_positions, "has_positions", positions == nil ? 0 : 1, "whether there are \(TensorName.positions)")
    let rope = try RopeTable.ofWrite(
      rotaryDim: params.rotaryDim, headDim: params.head_dim, attentionScale: params.attentionScale,
      offset: params.ropeOffset, pairing: args.pairing, invFreq: args.invFreq, invFreqCount: args.invFreqCount,
      from: positions == nil ? params.write_pos_start : nil, "write_pos_start", count: params.n_tokens, "n_tokens")
    let hasTable = Tensor.isPresent(args.blockTable)
    let pages = try HadamardPages(params, hasTable: hasTable)
    let table = try pages.map { pages throws(StatusError) in
      try BlockTable.use(args.blockTable, batch: args.batch, pages: params.cache_capacity / pages.tokens, in: pass)
    }
    guard
      let cache = try HadamardCache(
        params, k, v, batch: args.batch, count: params.n_tokens,
        from: positions == nil ? params.write_pos_start : nil, "write_pos_start", pages: pages)
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
    let isFixed = positions == nil && pages == nil
    var dispatch = HadamardDispatch(
      operation: .hadamardQuantizeKvSeq, task: .sequence, cache: cache, k: k, v: v,
      values: (source.value, touched),
      position: isFixed ? params.write_pos_start : nil, count: params.n_tokens, batch: args.batch)
    dispatch.places = (positions?.use, table)
    dispatch.rope = rope
    params.heads_of_thread = try Derived.fill(
      params.heads_of_thread, "heads_of_thread", dispatch.headsOfThread,
      "the heads of a token that share a thread's angles")
    return try dispatch.encode(params, into: pass)
  }

  /// nil where V's is that of K.
  private static func ownFormatOfV(_ args: MAHadamardQuantizeKvSeqArgs) throws(StatusError) -> HadamardFormat? {
    if args.packingV | args.bitsV == 0 { return nil }
    return try HadamardFormat(bits: args.bitsV, "bitsV", packing: args.packingV, "packingV")
  }
}
