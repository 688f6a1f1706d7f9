import CMetalAttention

/// The tensors of a decode, checked for themselves.
struct DecodeArguments {
  let q: Tensor
  let k: DecodeStream
  /// That of K where V is a part of it.
  let v: DecodeStream
  let out: Tensor
  // Where `present` says so; else a placeholder, since a kernel's buffers are bound whether it reads them or not.
  let lse: Tensor
  let seqLens: Tensor
  let sinks: Tensor
  let alibiSlopes: Tensor
  let treeMask: Tensor
  /// The same, with `hasPages`.
  let blockTable: Tensor
  /// Of V and out.
  let valueDim: UInt32
  /// MA_DECODE_*.
  let present: UInt32
  let hasPages: Bool

  /// - Parameters:
  ///   - device: as `Pass.deviceIdentity` has it.
  ///   - absent: what stands for a tensor that is not given.
  @inline(__always)
  init(_ args: MAFlashAttnDecodeArgs, of device: ObjectIdentifier, or absent: Unmanaged<Buffer>) throws(StatusError) {
    q = try Self.values(args.q, .q, of: device)
    k = try DecodeStream(
      (args.k, args.normsK, args.packingK, args.bitsK), (.k, .normsK, "packingK", "bitsK"), of: device, or: absent)
    let headDim = args.params.head_dim
    if headDim == DecodeKernel.latent.headDim {
      try require(
        !Tensor.isPresent(args.v) && !Tensor.isPresent(args.normsV), StatusCode.invalidArgument,
        "\(TensorName.v) is given with \(arg: "head_dim") \(headDim), where V is the first \(DecodeKernel.latent.valueDim) columns of K"
      )
      try require(
        k.rows.dtype == .f16 || k.rows.dtype == .bf16, StatusCode.unsupported,
        "\(TensorName.k) is \(k.rows.dtype) with \(arg: "head_dim") \(headDim); it is f16 or bf16 there")
      v = k
      valueDim = DecodeKernel.latent.valueDim
    } else {
      try require(
        DecodeKernel.place(headDim) != nil, StatusCode.unsupported,
        "\(arg: "head_dim") \(headDim) has no kernel; supported: \(DecodeKernel.family.headDimList), and \(DecodeKernel.latent.headDim) where V is a part of K"
      )
      v = try DecodeStream(
        (args.v, args.normsV, args.packingV, args.bitsV), (.v, .normsV, "packingV", "bitsV"), of: device, or: absent)
      valueDim = headDim
    }
    out = try Self.values(args.out, .out, of: device)
    lse = try Self.tensor(args.lse, .lse, .f32, of: device, or: absent)
    seqLens = try Self.tensor(args.seqLens, .seqLens, .i32, of: device, or: absent)
    blockTable = try Self.tensor(args.blockTable, .blockTable, .i32, of: device, or: absent)
    sinks = try Self.tensor(args.sinks, .sinks, .f32, of: device, or: absent)
    alibiSlopes = try Self.tensor(args.alibiSlopes, .alibiSlopes, .f32, of: device, or: absent)
    treeMask = try Self.tensor(args.treeMask, .treeMask, .u32, of: device, or: absent)
    hasPages = Tensor.isPresent(args.blockTable)
    func bit(_ part: DecodePart, _ isThere: Bool) -> UInt32 { isThere ? part.rawValue : 0 }
    present =
      bit(.seqLens, Tensor.isPresent(args.seqLens)) | bit(.sinks, Tensor.isPresent(args.sinks))
      | bit(.alibi, Tensor.isPresent(args.alibiSlopes)) | bit(.treeMask, Tensor.isPresent(args.treeMask))
      | bit(.lse, Tensor.isPresent(args.lse)) | bit(.codedV, v.format.isCoded)
  }

  @inline(__always)
  func has(_ part: DecodePart) -> Bool { present & part.rawValue != 0 }

  /// Checks that each tensor holds what the parameters, which have been checked, say.
  @inline(__always)
  func requireRoom(_ params: FlashAttnDecodeParams, batch: UInt32) throws(StatusError) {
    try require(
      (params.tree_columns != 0) == has(.treeMask), StatusCode.invalidArgument,
      "\(TensorName.treeMask) and \(arg: "tree_columns") \(params.tree_columns) go together: both, or neither")
    let queries = Count(batch) * params.n_heads * params.n_q
    func queriesFormula() -> Sentence {
      "\(arg: "batch") \(batch) x \(arg: "n_heads") \(params.n_heads) x \(arg: "n_q") \(params.n_q)"
    }
    try require(
      !queries.overflowed && queries.value <= UInt64(Int32.max), StatusCode.overflow,
      "\(queriesFormula()) queries exceed \(Int32.max)")
    try q.requireRoom(for: queries * params.head_dim, queriesFormula() + " x \(arg: "head_dim") \(params.head_dim)")
    try out.requireRoom(for: queries * valueDim, queriesFormula() + " x \(valueDim)")
    if has(.lse) { try lse.requireRoom(for: queries, queriesFormula()) }

    let rows = Count(hasPages ? params.n_pages : batch) * params.n_kv_heads
    let all = rows * (hasPages ? params.page_tokens : params.capacity)
    func rowsFormula() -> Sentence {
      hasPages
        ? "\(arg: "n_pages") \(params.n_pages) x \(arg: "n_kv_heads") \(params.n_kv_heads) x \(arg: "page_tokens") \(params.page_tokens)"
        : "\(arg: "batch") \(batch) x \(arg: "n_kv_heads") \(params.n_kv_heads) x \(arg: "capacity") \(params.capacity)"
    }
    try require(
      !all.overflowed && all.value <= UInt64(UInt32.max), StatusCode.overflow,
      "\(rowsFormula()) rows of a cache exceed \(UInt32.max)")
    try k.requireRoom(forRows: all, of: params.head_dim, rowsFormula())
    if valueDim == params.head_dim { try v.requireRoom(forRows: all, of: valueDim, rowsFormula()) }

    if has(.seqLens) { try seqLens.requireRoom(for: Count(batch), "\(arg: "batch") \(batch)") }
    if hasPages {
      let pages = params.capacity / params.page_tokens
      try blockTable.requireRoom(for: Count(batch) * pages, "\(arg: "batch") \(batch) x \(pages) pages")
    }
    if has(.sinks) { try sinks.requireRoom(for: Count(params.n_heads), "\(arg: "n_heads") \(params.n_heads)") }
    if has(.alibi) {
      try alibiSlopes.requireRoom(for: Count(params.n_heads), "\(arg: "n_heads") \(params.n_heads)")
    }
    if has(.treeMask) {
      try treeMask.requireRoom(
        for: Count(batch) * params.n_q, "\(arg: "batch") \(batch) x \(arg: "n_q") \(params.n_q)")
    }
  }

  /// Calls `body` with each tensor that is read.
  @inline(__always)
  func forEachInput<Failure>(_ body: (Tensor) throws(Failure) -> Void) throws(Failure) {
    try body(q)
    try body(k.rows)
    if k.format.isCoded { try body(k.norms) }
    try body(v.rows)
    if v.format.isCoded { try body(v.norms) }
    if has(.seqLens) { try body(seqLens) }
    if hasPages { try body(blockTable) }
    if has(.sinks) { try body(sinks) }
    if has(.alibi) { try body(alibiSlopes) }
    if has(.treeMask) { try body(treeMask) }
  }

  /// Checks that what is written shares no byte with anything else.
  @inline(__always)
  func requireApart() throws(StatusError) {
    let written = out.whole(isWrite: true)
    let logarithms = lse.whole(isWrite: true)
    let hasLogarithms = has(.lse)
    try forEachInput { (input) throws(StatusError) in
      let read = input.whole(isWrite: false)
      try written.requireApart(.out, from: read, input.name)
      if hasLogarithms { try logarithms.requireApart(.lse, from: read, input.name) }
    }
    if hasLogarithms { try logarithms.requireApart(.lse, from: written, .out) }
  }

  /// A tensor of the dtype that the operation requires, or `absent`.
  @inline(__always)
  private static func tensor(
    _ tensor: MATensor, _ name: TensorName, _ dtype: DType, of device: ObjectIdentifier, or absent: Unmanaged<Buffer>
  ) throws(StatusError) -> Tensor {
    try Tensor.optional(tensor, name, dtype, of: device) ?? Tensor(absent: absent, dtype, name)
  }

  private static func values(
    _ tensor: MATensor, _ name: TensorName, of device: ObjectIdentifier
  ) throws(StatusError) -> Tensor {
    let tensor = try Tensor(tensor, name, of: device)
    try require(
      tensor.dtype == .f32 || tensor.dtype == .f16 || tensor.dtype == .bf16, StatusCode.unsupported,
      "\(name) is \(tensor.dtype); it is f32, f16 or bf16")
    return tensor
  }
}
