import CMetalAttention

/// Quantized K and V of a prefill: decoded to scratch, a slot a position, from where attention reads them.
struct FlashAttnCodes {
  private let k: DecodeStream?
  private let v: DecodeStream?
  private let params: AttnCodeParams
  private let batch: UInt32
  private let headDim: Int32
  /// What stands for K and V where they are codes: their rows in scratch.
  private(set) var scratchK: Tensor?
  private(set) var scratchV: Tensor?

  @inline(__always)
  static func areGiven(_ args: MAFlashAttnPrefillArgs) -> Bool {
    DecodeStream.areCodes(streamOfK(args)) || DecodeStream.areCodes(streamOfV(args))
  }

  @inline(__always)
  private static func streamOfK(_ args: MAFlashAttnPrefillArgs) -> DecodeStream.Arguments {
    (args.k, args.normsK, args.packingK, args.bitsK)
  }

  @inline(__always)
  private static func streamOfV(_ args: MAFlashAttnPrefillArgs) -> DecodeStream.Arguments {
    (args.v, args.normsV, args.packingV, args.bitsV)
  }

  /// Checks the codes and gives `args` the layout of scratch. The numbers of `args` and its options have been checked;
  /// of the layout they describe here, pages are gone.
  init(
    _ args: inout MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors, _ tail: FlashAttnTail?, in pass: Pass
  ) throws(StatusError) {
    let params = args.params
    let options = args.options
    let device = pass.deviceIdentity
    func codes(
      _ arguments: DecodeStream.Arguments, _ names: DecodeStream.Names
    ) throws(StatusError) -> DecodeStream? {
      DecodeStream.areCodes(arguments) ? try DecodeStream(codes: arguments, names, of: device) : nil
    }
    k = try codes(Self.streamOfK(args), (.k, .normsK, "packingK", "bitsK"))
    v = try codes(Self.streamOfV(args), (.v, .normsV, "packingV", "bitsV"))
    let isPaged = options.page_tokens != 0
    try require(
      args.packedKeys == 0, StatusCode.unsupported,
      "\(TensorName.k) are codes and packed as the rows of q are; codes lie in a cache of 4 axes")
    try require(
      !isPaged || (k != nil && v != nil), StatusCode.unsupported,
      "\(k == nil ? TensorName.k : .v) is dense and \(k == nil ? TensorName.v : .k) codes in pages; there both are codes, or neither"
    )
    batch = UInt32(bitPattern: params.B)
    headDim = params.D
    let slots = UInt32(bitPattern: options.is_sliding != 0 ? options.capacity : params.kL)
    self.params = try Self.complete(args, slots: slots, tensors, tail)
    let source = self.params
    let rows = Count(isPaged ? source.n_pages : batch) * args.nKvHeads * source.capacity
    func formula() -> Sentence {
      "\(isPaged ? source.n_pages : UInt32(bitPattern: params.B)) x \(arg: "nKvHeads") \(source.n_kv_heads) x \(arg: "capacity") \(source.capacity)"
    }
    try require(
      !rows.overflowed && rows.value <= UInt64(UInt32.max), StatusCode.overflow,
      "\(formula()) rows of a cache exceed \(UInt32.max)")
    let headDim = UInt32(bitPattern: params.D)
    try k?.requireRoom(forRows: rows, of: headDim, formula())
    try v?.requireRoom(forRows: rows, of: headDim, formula())
    if isPaged {
      let pages = Count(batch) * source.max_pages
      try tensors.blockTable?.requireRoom(for: pages, "\(arg: "B") \(params.B) x \(source.max_pages) pages")
    }

    let bytes = Count(batch) * args.nKvHeads * slots * headDim * UInt32(2)
    let all = bytes * UInt32(k != nil && v != nil ? 2 : 1)
    try require(
      !all.overflowed, StatusCode.overflow,
      "\(arg: "B") \(params.B) x \(arg: "nKvHeads") \(args.nKvHeads) x \(slots) slots x \(arg: "D") \(params.D) leave 64 bits"
    )
    let memory = try pass.device.scratch.buffer(of: all.value, for: "decoded keys and values", on: pass.device)
    let scratch = Unmanaged.passUnretained(memory)
    func place(_ name: TensorName, _ offset: UInt64) -> Tensor {
      Tensor(
        buffer: scratch, handle: Scratch.handle, dtype: tensors.q.dtype, name: name, offset: offset,
        length: bytes.value)
    }
    let plane = Int64(slots) * Int64(params.D)
    let strides = (plane * Int64(args.nKvHeads), plane, Int64(params.D))
    if k != nil {
      scratchK = place(.k, 0)
      args.params.K_strides = strides
    }
    if v != nil {
      scratchV = place(.v, k == nil ? 0 : bytes.value)
      args.params.V_strides = strides
    }
    if isPaged {
      (args.options.page_tokens, args.options.n_pages, args.options.capacity) = (0, 0, params.kL)
    }
  }

  private static func complete(
    _ args: MAFlashAttnPrefillArgs, slots: UInt32, _ tensors: FlashAttnTensors, _ tail: FlashAttnTail?
  ) throws(StatusError) -> AttnCodeParams {
    let (params, options) = (args.params, args.options)
    let isPaged = options.page_tokens != 0
    let isRing = options.is_sliding != 0
    var codes = args.codes
    try require(
      codes.scale_factor_d512.isFinite && codes.scale_factor_d512 > 0, StatusCode.invalidArgument,
      "\(arg: "scale_factor_d512") is \(codes.scale_factor_d512); it is finite and above 0, usually 1")
    let least = isPaged ? UInt32(bitPattern: options.page_tokens) : slots
    try require(
      isPaged || isRing ? codes.capacity == least : codes.capacity >= least, StatusCode.invalidArgument,
      "\(arg: "codes.capacity") is \(codes.capacity); slots of codes are \(isPaged || isRing ? "" : "at least ")\(least)"
    )
    let hasLengths = tensors.seqLens != nil
    let reach = Int64(options.window) - 1
    let rowsBack = hasLengths || tensors.seqOffsets != nil ? Int64(params.qL) : Int64(params.kL) - Int64(params.qL_off)
    let inUse = tail?.keysBefore(params) ?? params.kL
    let seen = options.window == 0 ? Int64(inUse) : min(Int64(params.kL), rowsBack + reach) - Int64(params.kL - inUse)
    codes.n_kv_heads = try Derived.fill(codes.n_kv_heads, "n_kv_heads", args.nKvHeads, "nKvHeads")
    codes.n_slots = try Derived.fill(codes.n_slots, "n_slots", slots, "kL, or the slots of a ring")
    codes.is_sliding = try Derived.fill(codes.is_sliding, "is_sliding", isRing ? 1 : 0, "that of the options")
    codes.has_pages = try Derived.fill(codes.has_pages, "has_pages", isPaged ? 1 : 0, "1 with pages")
    let pages = isPaged ? UInt32(bitPattern: options.capacity / options.page_tokens) : 0
    codes.max_pages = try Derived.fill(codes.max_pages, "max_pages", pages, "the pages of a sequence")
    codes.n_pages = try Derived.fill(
      codes.n_pages, "n_pages", UInt32(bitPattern: options.n_pages), "that of the options")
    codes.seq_len = try Derived.fill(
      codes.seq_len, "seq_len", seen > 0 ? UInt32(bitPattern: inUse) : 0, "kL, or the keys before a tail")
    codes.has_lengths = try Derived.fill(codes.has_lengths, "has_lengths", hasLengths ? 1 : 0, "1 with seqLens")
    codes.keys_seen = try Derived.fill(
      codes.keys_seen, "keys_seen", options.window == 0 ? 0 : UInt32(max(0, seen)), "window and rows")
    codes.out_dtype = try Derived.fill(codes.out_dtype, "out_dtype", tensors.q.dtype.rawValue, "the dtype of q")
    return codes
  }

  /// Calls `body` with each tensor that decoding reads.
  func forEachInput(_ body: (Tensor) throws(StatusError) -> Void) throws(StatusError) {
    for stream in [k, v] {
      guard let stream else { continue }
      try body(stream.rows)
      try body(stream.norms)
    }
  }

  /// The pipelines that decoding needs; a slot where one is still to be made.
  func pipelines(_ pass: Pass) throws(StatusError) -> (missing: PipelineSlot?, k: Pipeline?, v: Pipeline?) {
    var made: [Pipeline?] = []
    for stream in [k, v] {
      guard let stream else {
        made.append(nil)
        continue
      }
      let slot = try FlashAttnDecodeKeys.slot(headDim, stream.format)
      guard let pipeline = pass.device.registry.pipeline(slot) else { return (slot, nil, nil) }
      made.append(pipeline)
    }
    return (nil, made[0], made[1])
  }

  /// Decodes K and V, whichever are codes.
  func encode(_ pipelines: (k: Pipeline?, v: Pipeline?), _ tensors: FlashAttnTensors, into pass: Pass) {
    encode(k, to: scratchK, pipelines.k, tensors, into: pass)
    encode(v, to: scratchV, pipelines.v, tensors, into: pass)
  }

  private func encode(
    _ stream: DecodeStream?, to scratch: Tensor?, _ pipeline: Pipeline?, _ tensors: FlashAttnTensors, into pass: Pass
  ) {
    guard let stream, let scratch, let pipeline else { return }
    let norms = stream.norms
    let encoder = pass.use(pipeline)
    encoder.bind(stream.rows.buffer, offset: stream.rows.offset, at: 0)
    encoder.bind(norms.buffer, offset: norms.offset, at: 1)
    encoder.bind(params, at: 2)
    encoder.bind(scratch.buffer, offset: scratch.offset, at: 3)
    for (index, tensor) in [(4, tensors.seqLens), (5, tensors.blockTable)] {
      encoder.bind((tensor ?? norms).buffer, offset: tensor?.offset ?? 0, at: index)
      if let tensor { encoder.note(tensor.whole(isWrite: false)) }
    }
    encoder.note(stream.rows.whole(isWrite: false))
    encoder.note(norms.whole(isWrite: false))
    encoder.note(scratch.whole(isWrite: true))
    let simdgroups = max(1, min(4, UInt32(pipeline.maxTotalThreadsPerThreadgroup) / 32))
    encoder.dispatch(
      .flashAttnPrefill, .threadgroups,
      grid: GridSize((params.n_slots - 1) / simdgroups + 1, params.n_kv_heads, batch),
      threads: GridSize(32, simdgroups, 1))
  }
}
