import CMetalAttention

/// `ma_flash_attn_prefill`: out = softmax(scale * q k^T + mask) v, tiled, with
/// q and out [B, H, qL, D], k and v [B, nKvHeads, kL, D] in any strides.
enum FlashAttnPrefill {
  @inline(__always)
  static func encode(_ args: MAFlashAttnPrefillArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var args = args
    var tensors = try FlashAttnTensors(args, of: pass.deviceIdentity)
    try FlashAttnParams.check(args.params, nKvHeads: args.nKvHeads, causal: args.causal)
    let kernel = try FlashAttnKernel.index(tensors.q.dtype, args.params.D, tensors.maskKind)
    let tiles = FlashAttnTiles.forHeadDim(args.params.D)
    try FlashAttnParams.fill(&args.params, nKvHeads: args.nKvHeads, tiles)
    let hasOptions = FlashAttnOptions.arePresent(args, tensors)
    if hasOptions { try FlashAttnOptions.complete(&args, tensors) }
    let tail = try FlashAttnTail.isGiven(args) ? FlashAttnTail(args, tensors) : nil
    let codes = try FlashAttnCodes.areGiven(args) ? FlashAttnCodes(&args, tensors, tail, in: pass) : nil
    let given = tensors
    if let codes { tensors = tensors.with(k: codes.scratchK, v: codes.scratchV) }
    let params = args.params
    let accesses = try FlashAttnAccesses(tensors, args)
    try codes?.forEachInput { (input) throws(StatusError) in
      try accesses.out.requireApart(.out, from: input.whole(isWrite: false), input.name)
      try accesses.lse?.requireApart(.lse, from: input.whole(isWrite: false), input.name)
    }
    var usedClasses: MadeTileClasses?
    if let dtype = tensors.mask?.dtype, let mask = accesses.mask, let tileClasses = accesses.tileClasses {
      let geometry = MaskGeometry(
        dtype, batches: params.B, heads: params.H, rows: params.qL, keys: params.kL,
        strides: args.maskParams.M_strides, tiles)
      usedClasses = try pass.requireFresh(tileClasses, of: mask, geometry)
    }

    // One bit for each of FlashAttnKernel.constants; with options the parameters say what the others would.
    let shape =
      hasOptions
      ? 32 : (params.qL_rem == 0 ? 1 : 0) | (params.kL_rem == 0 ? 2 : 0) | (args.causal == 1 ? 8 : 0)
    let variant =
      shape | (tensors.mask != nil ? 4 : 0) | (tensors.tileClasses != nil ? 16 : 0)
      | (isAligned(tensors, params) ? 64 : 0) | (tail != nil ? 128 : 0) | (pass.device.hasMatrixUnits ? 256 : 0)
    let slot = PipelineSlot(kernel: kernel, variant: variant)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    if let codes {
      let (missing, k, v) = try codes.pipelines(pass)
      if let missing { return missing }
      codes.encode((k, v), given, into: pass)
    }

    let encoder = pass.use(pipeline)
    bind(tensors.q, accesses.q, at: 0, in: encoder)
    bind(tensors.k, accesses.k, at: 1, in: encoder)
    bind(tensors.v, accesses.v, at: 2, in: encoder)
    bind(tensors.out, accesses.out, at: 3, in: encoder)
    encoder.bind(params, at: 4)
    if let mask = tensors.mask, let access = accesses.mask {
      encoder.bind(args.maskParams, at: 5)
      bind(mask, access, at: 6, in: encoder)
    }
    if let tileClasses = tensors.tileClasses, let access = accesses.tileClasses {
      bind(tileClasses, access, at: 7, in: encoder)
      if let usedClasses { pass.usedTileClasses.append(usedClasses) }
    }
    if hasOptions { bindOptions(args.options, tensors, accesses, in: encoder) }
    if let tail, let tailK = tensors.tailK, let tailV = tensors.tailV, let readK = accesses.tailK,
      let readV = accesses.tailV
    {
      encoder.bind(tail.params, at: 15)
      bind(tailK, readK, at: 16, in: encoder)
      bind(tailV, readV, at: 17, in: encoder)
    }
    // Packed sequences have a tile more than their rows fill, at most.
    let isPacked = tensors.seqOffsets != nil
    let sequences = UInt32(bitPattern: params.B)
    encoder.dispatch(
      .flashAttnPrefill, .threadgroups,
      grid: GridSize(
        UInt32(bitPattern: params.H), isPacked ? 1 : sequences,
        isPacked ? UInt32(bitPattern: params.qL / tiles.bq) + sequences : UInt32(bitPattern: params.NQ)),
      threads: GridSize(32, tiles.wm, tiles.wn))
    return nil
  }

  /// Whether every 8 elements of a row of q, k, v and a tail begin at a multiple of 16 bytes.
  @inline(__always)
  private static func isAligned(_ tensors: FlashAttnTensors, _ params: AttnParams) -> Bool {
    let (q, k, v) = (params.Q_strides, params.K_strides, params.V_strides)
    let tail = (tensors.tailK?.offset ?? 0) | (tensors.tailV?.offset ?? 0)
    return (tensors.q.offset | tensors.k.offset | tensors.v.offset | tail) % 16 == 0
      && (q.0 | q.1 | q.2 | k.0 | k.1 | k.2 | v.0 | v.1 | v.2) % 8 == 0
  }

  /// All of these buffers are bound: what is absent, which is not read, to the start of another's memory.
  private static func bindOptions(
    _ options: AttnOptionParams, _ tensors: FlashAttnTensors, _ accesses: FlashAttnAccesses, in encoder: DispatchEncoder
  ) {
    encoder.bind(options, at: 8)
    let (q, out) = (tensors.q, tensors.out)
    bind(tensors.sinks, accesses.sinks, or: q, at: 9, in: encoder)
    bind(tensors.alibiSlopes, accesses.alibiSlopes, or: q, at: 10, in: encoder)
    bind(tensors.lse, accesses.lse, or: out, at: 11, in: encoder)
    bind(tensors.seqLens, accesses.seqLens, or: q, at: 12, in: encoder)
    bind(tensors.seqOffsets, accesses.seqOffsets, or: q, at: 13, in: encoder)
    bind(tensors.blockTable, accesses.blockTable, or: q, at: 14, in: encoder)
  }

  @inline(__always)
  private static func bind(
    _ tensor: Tensor?, _ access: Access?, or other: Tensor, at index: Int, in encoder: DispatchEncoder
  ) {
    if let tensor, let access {
      bind(tensor, access, at: index, in: encoder)
    } else {
      encoder.bind(other.buffer, offset: 0, at: index)
    }
  }

  @inline(__always)
  private static func bind(_ tensor: Tensor, _ access: Access, at index: Int, in encoder: DispatchEncoder) {
    encoder.bind(tensor.buffer, offset: tensor.offset, at: index)
    encoder.note(access)
  }
}
