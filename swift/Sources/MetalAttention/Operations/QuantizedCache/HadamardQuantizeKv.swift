import CMetalAttention

/// `ma_hadamard_quantize_kv`: one token [num_kv_heads, head_dim] into a
/// quantised cache, K alone or K and V.
enum HadamardQuantizeKv {
  static func encode(_ args: MAHadamardQuantizeKvArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let (k, v) = try HadamardStream.both(
      .source, (args.srcK, args.packedK, args.normsK), (args.srcV, args.packedV, args.normsV), in: pass)
    let params = paramsOfAnyWidth(args)
    let format = try HadamardFormat(bits: params.codebook_bits, packing: args.packing)
    let scratch = try scratch(args, format, v, in: pass)
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    if params.num_kv_heads == 0 || params.head_dim == 0 { return nil }

    let cache = try HadamardCache(format, params)
    try CacheRange.requireSlot(
      params.write_pos, "write_pos", capacity: params.cache_capacity, "cache_capacity", isRing: isRing,
      otherwise: "a linear cache ends there")
    let token = Count(params.num_kv_heads) * params.head_dim
    func formula() -> String {
      "num_kv_heads \(params.num_kv_heads) x head_dim \(params.head_dim)"
    }
    try k.values.requireRoom(for: token, formula())
    try v?.values.requireRoom(for: token, formula())
    try scratch?.requireRoom(for: token, formula())

    var dispatch = HadamardDispatch(
      operation: .hadamardQuantizeKv, task: .token, cache: cache, k: k, v: v,
      values: (token.value, 0..<token.value), position: params.write_pos, count: 1)
    if let scratch {
      dispatch.probe = TensorUse(
        tensor: scratch, isWrite: true, elements: token.value, touched: HeadMajor.Slots(elements: 0..<token.value))
    }
    return format.packing == .nibble
      ? try dispatch.encode(args.params, into: pass) : try dispatch.encode(args.hbParams, into: pass)
  }

  /// The parameters that the packing selects, in the form that states the width.
  private static func paramsOfAnyWidth(_ args: MAHadamardQuantizeKvArgs) -> HadamardQuantizeHbParams {
    guard args.packing == HadamardFormat.Packing.nibble.rawValue else { return args.hbParams }
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
    let isPresent = Tensor.isPresent(args.rmsScratch)
    if format.packing == .nibble {
      try require(
        args.params.rms_probe_enabled == (isPresent ? 1 : 0), StatusCode.invalidArgument,
        "rms_probe_enabled is \(args.params.rms_probe_enabled); it is 1 with rmsScratch and 0 without")
    }
    if !isPresent { return nil }
    try require(
      format.packing == .nibble, StatusCode.unsupported,
      "rmsScratch is given for codes of \(format.bits) bits with packing \(format.packing); the probe is of 4 bits with packing nibble"
    )
    try require(
      v == nil, StatusCode.unsupported, "rmsScratch is given with K and V; the probe is of one stream")
    let scratch = try Tensor(args.rmsScratch, .rmsScratch, in: pass)
    try scratch.requireDType(.f32)
    return scratch
  }
}
