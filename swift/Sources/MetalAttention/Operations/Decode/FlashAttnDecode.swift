import CMetalAttention

/// `ma_flash_attn_decode`: attention of one to 16 query rows of each sequence
/// over its cache. One dispatch over blocks of keys, and where there are several
/// a second one that joins them.
enum FlashAttnDecode {
  @inline(__always)
  static func encode(_ args: MAFlashAttnDecodeArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let absent = try pass.device.scratch.placeholder(on: pass.device)
    let tensors = try DecodeArguments(args, of: pass.deviceIdentity, or: absent)
    let hasLengths = tensors.has(.seqLens)
    try DecodeParams.check(params, batch: args.batch, hasLengths: hasLengths, hasTable: tensors.hasPages)
    if tensors.k.format.isCoded || tensors.v.format.isCoded {
      try require(
        params.scale_factor_d512.isFinite && params.scale_factor_d512 > 0, StatusCode.invalidArgument,
        "\(arg: "scale_factor_d512") is \(params.scale_factor_d512); it is finite and above 0, usually 1")
    }
    try tensors.requireRoom(params, batch: args.batch)
    try tensors.requireApart()
    let form = DecodeKernel.form(params.head_dim, k: tensors.k.format, v: tensors.v.format, on: pass.device)
    let geometry = DecodeGeometry(
      params, form, batch: args.batch, hasLengths: hasLengths, cores: pass.device.coreCount)
    try fill(&params, tensors, geometry)

    let slot = try DecodeKernel.attend(
      params.head_dim, form, tile: geometry.tile, k: tensors.k, v: tensors.v)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let queries = args.batch * params.n_heads * params.n_q
    if geometry.blocks == 1 {
      let encoder = pass.use(pipeline)
      bind(tensors, params, in: encoder)
      encoder.bind(absent, offset: 0, at: 13)
      encoder.bind(absent, offset: 0, at: 14)
      note(tensors, in: encoder)
      attend(pipeline, params, geometry, batch: args.batch, in: encoder)
      return nil
    }

    let reduceSlot = try DecodeKernel.reduce(tensors.valueDim)
    guard let reduce = pass.device.registry.pipeline(reduceSlot) else { return reduceSlot }
    let scratch = try States(queries: queries, blocks: geometry.blocks, valueDim: tensors.valueDim, of: pass.device)
    let states = Unmanaged.passUnretained(scratch.buffer)
    let attending = pass.use(pipeline)
    bind(tensors, params, in: attending)
    attending.bind(states, offset: 0, at: 13)
    attending.bind(states, offset: scratch.outputs, at: 14)
    note(tensors, in: attending, withOutputs: false)
    attending.note(scratch.access(isWrite: true))
    attend(pipeline, params, geometry, batch: args.batch, in: attending)

    let joining = pass.use(reduce)
    joining.bind(states, offset: 0, at: 0)
    joining.bind(states, offset: scratch.outputs, at: 1)
    bind(tensors.sinks, at: 2, in: joining)
    joining.bind(params, at: 5)
    bind(tensors.out, at: 6, in: joining)
    bind(tensors.lse, at: 7, in: joining)
    joining.note(scratch.access(isWrite: false))
    if tensors.has(.sinks) { joining.note(tensors.sinks.whole(isWrite: false)) }
    noteOutputs(tensors, in: joining)
    joining.dispatch(
      .flashAttnDecode, .threadgroups, grid: GridSize(queries, 1, 1),
      threads: GridSize(32, (tensors.valueDim - 1) / 32 + 1, 1))
    return nil
  }

  /// Fills the fields that follow from others.
  @inline(__always)
  private static func fill(
    _ params: inout FlashAttnDecodeParams, _ tensors: DecodeArguments, _ geometry: DecodeGeometry
  ) throws(StatusError) {
    params.q_dtype = try Derived.fill(params.q_dtype, "q_dtype", tensors.q.dtype.rawValue, "the dtype of q")
    params.out_dtype = try Derived.fill(params.out_dtype, "out_dtype", tensors.out.dtype.rawValue, "the dtype of out")
    params.present = try Derived.fill(params.present, "present", tensors.present, "the tensors that are given")
    params.n_blocks = try Derived.fill(params.n_blocks, "n_blocks", geometry.blocks, "the blocks of keys")
    params.n_tiles = try Derived.fill(params.n_tiles, "n_tiles", geometry.tiles, "the tiles of queries")
  }

  @inline(__always)
  private static func bind(
    _ tensors: DecodeArguments, _ params: FlashAttnDecodeParams, in encoder: DispatchEncoder
  ) {
    bind(tensors.q, at: 0, in: encoder)
    bind(tensors.k.rows, at: 1, in: encoder)
    bind(tensors.k.norms, at: 2, in: encoder)
    bind(tensors.v.rows, at: 3, in: encoder)
    bind(tensors.v.norms, at: 4, in: encoder)
    encoder.bind(params, at: 5)
    bind(tensors.out, at: 6, in: encoder)
    bind(tensors.lse, at: 7, in: encoder)
    bind(tensors.seqLens, at: 8, in: encoder)
    bind(tensors.blockTable, at: 9, in: encoder)
    bind(tensors.sinks, at: 10, in: encoder)
    bind(tensors.alibiSlopes, at: 11, in: encoder)
    bind(tensors.treeMask, at: 12, in: encoder)
  }

  @inline(__always)
  private static func bind(_ tensor: Tensor, at index: Int, in encoder: DispatchEncoder) {
    encoder.bind(tensor.buffer, offset: tensor.offset, at: index)
  }

  @inline(__always)
  private static func note(_ tensors: DecodeArguments, in encoder: DispatchEncoder, withOutputs: Bool = true) {
    tensors.forEachInput { encoder.note($0.whole(isWrite: false)) }
    if withOutputs { noteOutputs(tensors, in: encoder) }
  }

  @inline(__always)
  private static func noteOutputs(_ tensors: DecodeArguments, in encoder: DispatchEncoder) {
    encoder.note(tensors.out.whole(isWrite: true))
    if tensors.has(.lse) { encoder.note(tensors.lse.whole(isWrite: true)) }
  }

  @inline(__always)
  private static func attend(
    _ pipeline: Pipeline, _ params: FlashAttnDecodeParams, _ geometry: DecodeGeometry, batch: UInt32,
    in encoder: DispatchEncoder
  ) {
    // Where the pipeline allows fewer, lanes take fewer, and the result does not depend on it; matrices need theirs.
    let simdGroups = max(2, min(geometry.simdGroups, pipeline.maxTotalThreadsPerThreadgroup / 64 * 2))
    encoder.dispatch(
      .flashAttnDecode, .threadgroups,
      grid: GridSize(geometry.threadgroups(of: simdGroups), params.n_kv_heads, batch),
      threads: GridSize(32, simdGroups, 1))
  }
}

/// Where the states of blocks lie in the scratch of a device: first of all
/// blocks of all queries maximum and sum, then what they add up to.
private struct States {
  let buffer: Buffer
  /// Bytes before the sums of rows.
  let outputs: UInt64
  private let length: UInt64

  init(queries: UInt32, blocks: UInt32, valueDim: UInt32, of device: Device) throws(StatusError) {
    let states = Count(queries) * blocks
    let bytes = states * (4 * (valueDim + 2))
    try require(
      !bytes.overflowed, StatusCode.overflow,
      "\(queries) queries x \(blocks) blocks of keys leave 64 bits; attend to fewer sequences at once")
    outputs = states.value * 8
    length = bytes.value
    buffer = try device.scratch.buffer(of: length, for: "the states of blocks of keys", on: device)
  }

  func access(isWrite: Bool) -> Access { Scratch.access(0..<length, isWrite: isWrite) }
}
