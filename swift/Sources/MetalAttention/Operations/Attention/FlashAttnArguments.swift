import CMetalAttention

/// A value for each tensor argument of a prefill.
struct FlashAttnArguments<Each> {
  let q: Each
  let k: Each
  let v: Each
  let out: Each
  let mask: Each?
  let tileClasses: Each?
}

/// The tensors of a prefill, each checked on its own.
typealias FlashAttnTensors = FlashAttnArguments<Tensor>

extension FlashAttnArguments where Each == Tensor {
  @inline(__always)
  init(_ args: MAFlashAttnPrefillArgs, in pass: Pass) throws(StatusError) {
    q = try Tensor(args.q, .q, in: pass)
    k = try Tensor(args.k, .k, in: pass)
    v = try Tensor(args.v, .v, in: pass)
    out = try Tensor(args.out, .out, in: pass)
    mask = try Tensor.isPresent(args.mask) ? Tensor(args.mask, .mask, in: pass) : nil
    tileClasses = try Tensor.isPresent(args.tileClasses) ? Tensor(args.tileClasses, .tileClasses, in: pass) : nil
    try requireDType(of: k)
    try requireDType(of: v)
    try requireDType(of: out)
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
    let queries = (batch: params.B, heads: params.H, rows: params.qL)
    let keys = (batch: params.B, heads: Int32(truncatingIfNeeded: args.nKvHeads), rows: params.kL)
    q = try Self.access(tensors.q, AttnExtent("Q_strides", queries, params.Q_strides, params.D))
    k = try Self.access(tensors.k, AttnExtent("K_strides", keys, params.K_strides, params.D))
    v = try Self.access(tensors.v, AttnExtent("V_strides", keys, params.V_strides, params.D))
    let outExtent = try AttnExtent("O_strides", queries, params.O_strides, params.D)
    out = try Self.access(tensors.out, outExtent, isWrite: true)
    try require(
      outExtent.isInjective, StatusCode.invalidArgument,
      "\(arg: "O_strides"): \(params.O_strides) would let two rows of out share memory")

    if let tensor = tensors.mask {
      mask = try Self.access(tensor, AttnExtent("M_strides", queries, args.maskParams.M_strides, params.kL))
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

    try out.requireApart(.out, from: q, .q)
    try out.requireApart(.out, from: k, .k)
    try out.requireApart(.out, from: v, .v)
    if let mask { try out.requireApart(.out, from: mask, .mask) }
    if let tileClasses { try out.requireApart(.out, from: tileClasses, .tileClasses) }
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
