import CMetalAttention

/// What a prefill takes: something of each of its tensors.
struct FlashAttnArguments<Each> {
  let q: Each
  let k: Each
  let v: Each
  let out: Each
  let mask: Each?
  let tileClasses: Each?
}

/// The tensors of a prefill, checked for themselves.
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
