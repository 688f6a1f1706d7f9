import CMetalAttention

/// `ma_hadamard_quantize_kv`: one token [batch, num_kv_heads, head_dim]
/// into a quantized cache, K alone or K and V.
enum HadamardQuantizeKv {
  static func encode(_ args: MAHadamardQuantizeKvArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let params = paramsOfAnyWidth(args)
    let format = try HadamardFormat(bits: params.codebook_bits, packing: args.packing)
    let (k, v) = try HadamardStream.both(
      .source, (args.srcK, args.packedK, args.normsK, format), (args.srcV, args.packedV, args.normsV, format), in: pass)
    let scratch = try scratch(args, format, v, in: pass)
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    let heads = try CacheRange.heads(params.num_kv_heads, "num_kv_heads", batch: args.batch)
    if heads == 0 || params.head_dim == 0 { return nil }

    let cache = try HadamardCache(params, k, v, heads: heads, batch: args.batch)
    try CacheRange.requireSlot(
      params.write_pos, "write_pos", capacity: params.cache_capacity, "cache_capacity", of: .packedK,
      isRing: isRing, "is_sliding")
    let token = Count(heads) * params.head_dim
    func formula() -> Sentence {
      "\(cache.headsFormula) x \(arg: "head_dim") \(params.head_dim)"
    }
    try k.values.requireRoom(for: token, formula())
    try v?.values.requireRoom(for: token, formula())

    var dispatch = HadamardDispatch(
      operation: .hadamardQuantizeKv, task: .token, cache: cache, k: k, v: v,
      values: (token.value, 0..<token.value), position: params.write_pos, count: 1)
    if let scratch { dispatch.probe = try probe(scratch, args, cache) }
    // The batch is laid out as further heads.
    if format.packing == .nibble {
      var params = args.params
      params.num_kv_heads = heads
      params.rms_probe_enabled = try Derived.fill(
        params.rms_probe_enabled, "rms_probe_enabled", probeMode(args, hasScratch: scratch != nil),
        "1 with rmsScratch and 0 without")
      return try dispatch.encode(params, into: pass)
    }
    var hbParams = args.hbParams
    hbParams.num_kv_heads = heads
    return try dispatch.encode(hbParams, into: pass)
  }

  /// What the kernel reads in `rms_probe_enabled`: 0 without a probe, 1 for all
  /// coordinates, 16 for the first 16 of each norm.
  private static func probeMode(_ args: MAHadamardQuantizeKvArgs, hasScratch: Bool) -> UInt32 {
    hasScratch ? max(1, args.rmsCoordinates) : 0
  }

  /// What the probe writes, checked against its tensor.
  private static func probe(
    _ scratch: Tensor, _ args: MAHadamardQuantizeKvArgs, _ cache: HadamardCache
  ) throws(StatusError) -> TensorUse {
    try require(
      args.rmsCoordinates == 0 || args.rmsCoordinates == 16, StatusCode.invalidArgument,
      "\(arg: "rmsCoordinates") is \(args.rmsCoordinates); it is 16, or 0 for all")
    let ofHead = args.rmsCoordinates == 0 ? cache.headDim : cache.norms.rowSize * args.rmsCoordinates
    let elements = Count(cache.heads) * ofHead
    try scratch.requireRoom(for: elements, "\(cache.headsFormula) x \(ofHead) coordinates")
    return .whole(scratch, isWrite: true, elements: elements.value)
  }

  /// The parameters that the packing selects, in the form that states the width.
  private static func paramsOfAnyWidth(_ args: MAHadamardQuantizeKvArgs) -> HadamardQuantizeHbParams {
    guard args.packing == Packing.nibble.rawValue else { return args.hbParams }
    let params = args.params
    return HadamardQuantizeHbParams(
      head_dim: params.head_dim, num_kv_heads: params.num_kv_heads, write_pos: params.write_pos,
      cache_capacity: params.cache_capacity, is_sliding: params.is_sliding,
      scale_factor_d512: params.scale_factor_d512, codebook_bits: 4)
  }

  /// The tensor of the probe, nil without one.
  private static func scratch(
    _ args: MAHadamardQuantizeKvArgs, _ format: HadamardFormat, _ v: HadamardStream?, in pass: Pass
  ) throws(StatusError) -> Tensor? {
    if !Tensor.isPresent(args.rmsScratch) { return nil }
    try require(
      format.packing == .nibble, StatusCode.unsupported,
      "\(arg: "rmsScratch") is given for codes of \(format.bits) bits with \(arg: "packing") \(format.packing); the probe is of 4 bits with packing nibble"
    )
    try require(
      v == nil, StatusCode.unsupported, "\(arg: "rmsScratch") is given with K and V; the probe is of one stream")
    let scratch = try Tensor(args.rmsScratch, .rmsScratch, in: pass)
    try scratch.requireDType(.f32)
    return scratch
  }
}
