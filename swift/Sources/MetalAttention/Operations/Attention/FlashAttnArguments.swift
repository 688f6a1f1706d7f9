import CMetalAttention

/// A value for each tensor argument of a prefill.
struct FlashAttnArguments<Each> {
  let q: Each
  let k: Each
  let v: Each
  let out: Each
  let mask: Each?
  let tileClasses: Each?
  let lse: Each?
  let sinks: Each?
  let alibiSlopes: Each?
  let seqLens: Each?
  let seqOffsets: Each?
  let blockTable: Each?
  let tailK: Each?
  let tailV: Each?
}

/// The tensors of a prefill, each checked on its own.
typealias FlashAttnTensors = FlashAttnArguments<Tensor>

extension FlashAttnArguments where Each == Tensor {
  @inline(__always)
  init(_ args: MAFlashAttnPrefillArgs, of device: ObjectIdentifier) throws(StatusError) {
    q = try Tensor(args.q, .q, of: device)
    k = try Tensor(args.k, .k, of: device)
    v = try Tensor(args.v, .v, of: device)
    out = try Tensor(args.out, .out, of: device)
    mask = try Tensor.isPresent(args.mask) ? Tensor(args.mask, .mask, of: device) : nil
    tileClasses = try Tensor.isPresent(args.tileClasses) ? Tensor(args.tileClasses, .tileClasses, of: device) : nil
    lse = try Tensor.optional(args.lse, .lse, .f32, of: device)
    sinks = try Tensor.optional(args.sinks, .sinks, .f32, of: device)
    alibiSlopes = try Tensor.optional(args.alibiSlopes, .alibiSlopes, .f32, of: device)
    seqLens = try Tensor.optional(args.seqLens, .seqLens, .i32, of: device)
    seqOffsets = try Tensor.optional(args.seqOffsets, .seqOffsets, .i32, of: device)
    blockTable = try Tensor.optional(args.blockTable, .blockTable, .i32, of: device)
    tailK = try Tensor.isPresent(args.tailK) ? Tensor(args.tailK, .tailK, of: device) : nil
    tailV = try Tensor.isPresent(args.tailV) ? Tensor(args.tailV, .tailV, of: device) : nil
    // Before what is compared with it.
    try FlashAttnKernel.requireServed(q.dtype, args.params.D)
    if args.bitsK == 0 { try requireDType(of: k) }
    if args.bitsV == 0 { try requireDType(of: v) }
    try requireDType(of: out)
    if let tailK { try requireDType(of: tailK) }
    if let tailV { try requireDType(of: tailV) }
    if let mask {
      try require(
        mask.dtype == q.dtype || mask.dtype == .bool, StatusCode.unsupported,
        "\(arg: "mask") is \(mask.dtype); it is \(q.dtype), as q, or bool")
    }
    if let tileClasses {
      try require(
        mask != nil, StatusCode.invalidArgument, "\(arg: "tileClasses") is given without the mask that it classifies")
      try tileClasses.requireDType(.u8)
    }
  }

  /// The same with other keys and values, and with pages gone.
  func with(k newK: Tensor?, v newV: Tensor?) -> FlashAttnTensors {
    FlashAttnTensors(
      q: q, k: newK ?? k, v: newV ?? v, out: out, mask: mask, tileClasses: tileClasses, lse: lse, sinks: sinks,
      alibiSlopes: alibiSlopes, seqLens: seqLens, seqOffsets: seqOffsets, blockTable: newK == nil ? blockTable : nil,
      tailK: tailK, tailV: tailV)
  }

  /// Whether there is a tensor of those that a kernel with options takes beside a tail.
  @inline(__always)
  var hasOptions: Bool {
    lse != nil || sinks != nil || alibiSlopes != nil || seqLens != nil || seqOffsets != nil || blockTable != nil
  }

  var maskKind: FlashAttnKernel.Mask {
    switch mask?.dtype {
    case nil: .none
    case .bool: .bool
    default: .additive
    }
  }

  @inline(__always)
  private func requireDType(of tensor: Tensor) throws(StatusError) {
    try require(
      tensor.dtype == q.dtype, StatusCode.unsupported,
      "\(tensor.name) is \(tensor.dtype), q is \(q.dtype); all of q, k, v and out have one dtype")
  }
}

/// What a prefill reads and writes, from its strides, checked against the
/// tensors.
typealias FlashAttnAccesses = FlashAttnArguments<Access>

extension FlashAttnArguments where Each == Access {
  @inline(__always)
  init(_ tensors: FlashAttnTensors, _ args: MAFlashAttnPrefillArgs) throws(StatusError) {
    let params = args.params
    let shapes = FlashAttnShapes(args, hasOffsets: tensors.seqOffsets != nil)
    q = try Self.access(tensors.q, AttnExtent("Q_strides", shapes.queries, params.Q_strides, params.D))
    k = try Self.access(tensors.k, AttnExtent("K_strides", shapes.keys, params.K_strides, params.D))
    v = try Self.access(tensors.v, AttnExtent("V_strides", shapes.keys, params.V_strides, params.D))
    let outExtent = try AttnExtent("O_strides", shapes.queries, params.O_strides, params.D)
    out = try Self.access(tensors.out, outExtent, isWrite: true)
    try require(
      outExtent.isInjective, StatusCode.invalidArgument,
      "\(arg: "O_strides"): \(params.O_strides) would let two rows of out share memory")
    if let tensor = tensors.lse {
      let extent = try AttnExtent("L_strides", shapes.queries, args.options.L_strides, 1)
      lse = try Self.access(tensor, extent, isWrite: true)
      try require(
        extent.isInjective, StatusCode.invalidArgument,
        "\(arg: "L_strides"): \(args.options.L_strides) would let two rows of lse share memory")
    } else {
      lse = nil
    }
    let heads = UInt32(bitPattern: params.H)
    sinks = try Self.vector(tensors.sinks, Count(heads), "\(arg: "H") \(heads)")
    alibiSlopes = try Self.vector(tensors.alibiSlopes, Count(heads), "\(arg: "H") \(heads)")
    let sequences = UInt32(bitPattern: params.B)
    seqLens = try Self.vector(tensors.seqLens, Count(sequences), "\(arg: "B") \(sequences)")
    seqOffsets = try Self.vector(tensors.seqOffsets, Count(sequences) + UInt32(1), "\(arg: "B") \(sequences) + 1")
    let pages = UInt32(bitPattern: shapes.pagesOfSequence)
    blockTable = try Self.vector(
      tensors.blockTable, Count(sequences) * pages, "\(arg: "B") \(sequences) x \(pages) pages")

    let ofTail = Count(UInt32(bitPattern: args.tail.slots)) * args.nKvHeads * UInt32(bitPattern: params.D)
    func tailFormula() -> Sentence {
      "\(arg: "tail.slots") \(args.tail.slots) x \(arg: "nKvHeads") \(args.nKvHeads) x \(arg: "D") \(params.D)"
    }
    tailK = try Self.vector(tensors.tailK, ofTail, tailFormula())
    tailV = try Self.vector(tensors.tailV, ofTail, tailFormula())

    if let tensor = tensors.mask {
      mask = try Self.access(tensor, AttnExtent("M_strides", shapes.queries, args.maskParams.M_strides, params.kL))
    } else {
      mask = nil
    }
    if let tensor = tensors.tileClasses {
      let planes = MaskPlanes(batches: params.B, heads: params.H, strides: args.maskParams.M_strides)
      let tiles = planes.tiles(params.NQ, params.NK)
      try tensor.requireRoom(for: tiles, planes.formula(params.NQ, params.NK))
      tileClasses = tensor.access(0..<tiles.value, isWrite: false)
    } else {
      tileClasses = nil
    }

    try requireApart(out, .out)
    if let lse {
      try requireApart(lse, .lse)
      try lse.requireApart(.lse, from: out, .out)
    }
  }

  /// Checks that what is written shares no byte with what is read.
  @inline(__always)
  private func requireApart(_ written: Access, _ name: TensorName) throws(StatusError) {
    try written.requireApart(name, from: q, .q)
    try written.requireApart(name, from: k, .k)
    try written.requireApart(name, from: v, .v)
    if let mask { try written.requireApart(name, from: mask, .mask) }
    if let tileClasses { try written.requireApart(name, from: tileClasses, .tileClasses) }
    if let sinks { try written.requireApart(name, from: sinks, .sinks) }
    if let alibiSlopes { try written.requireApart(name, from: alibiSlopes, .alibiSlopes) }
    if let seqLens { try written.requireApart(name, from: seqLens, .seqLens) }
    if let seqOffsets { try written.requireApart(name, from: seqOffsets, .seqOffsets) }
    if let blockTable { try written.requireApart(name, from: blockTable, .blockTable) }
    if let tailK { try written.requireApart(name, from: tailK, .tailK) }
    if let tailV { try written.requireApart(name, from: tailV, .tailV) }
  }

  /// What is read of a vector of so many elements.
  @inline(__always)
  private static func vector(
    _ tensor: Tensor?, _ length: Count, _ formula: @autoclosure () -> Sentence
  ) throws(StatusError) -> Access? {
    guard let tensor else { return nil }
    try tensor.requireRoom(for: length, formula())
    return tensor.access(0..<length.value, isWrite: false)
  }

  @inline(__always)
  private static func access(
    _ tensor: Tensor, _ extent: AttnExtent, isWrite: Bool = false
  ) throws(StatusError) -> Access {
    let elements = extent.elements
    try tensor.requireRoom(for: elements, extent.formula)
    return tensor.access(0..<elements.value, isWrite: isWrite)
  }
}
