import CMetalAttention

/// Checks of the numbers in `AttnParams`, apart from any tensor.
enum FlashAttnParams {
  @inline(__always)
  static func check(_ params: AttnParams, nKvHeads: UInt32, causal: UInt32) throws(StatusError) {
    try positive(params.B, "B")
    try positive(params.H, "H")
    try positive(params.D, "D")
    try positive(params.qL, "qL")
    try positive(params.kL, "kL")
    try require(nKvHeads > 0, StatusCode.invalidArgument, "\(arg: "nKvHeads") is 0; it is at least 1")
    try require(
      UInt32(bitPattern: params.H) % nKvHeads == 0, StatusCode.invalidArgument,
      "\(arg: "H") \(params.H) is not a multiple of \(arg: "nKvHeads") \(nKvHeads)")
    try require(causal <= 1, StatusCode.invalidArgument, "\(arg: "causal") is \(causal); it is 0 or 1")
    try require(
      params.scale.isFinite && params.scale > 0, StatusCode.invalidArgument,
      "\(arg: "scale") is \(params.scale); it is finite and above 0, usually 1/sqrt(D)")
    try require(
      params.softcapping == 1, StatusCode.unsupported,
      "\(arg: "softcapping") is \(params.softcapping); it is 1, and options.softcap caps scores")
    try require(
      params.qL_off >= 0, StatusCode.invalidArgument, "\(arg: "qL_off") is \(params.qL_off); it is at least 0")
    try require(
      params.qL_off == 0 || Int64(params.qL_off) + Int64(params.qL) <= Int64(params.kL), StatusCode.invalidArgument,
      "\(arg: "qL_off") \(params.qL_off) + \(arg: "qL") \(params.qL) exceeds \(arg: "kL") \(params.kL); the queries reach past the keys"
    )
  }

  /// Fills the fields that follow from others.
  @inline(__always)
  static func fill(_ params: inout AttnParams, nKvHeads: UInt32, _ tiles: FlashAttnTiles) throws(StatusError) {
    let (qL, kL, bq, bk) = (params.qL, params.kL, tiles.bq, tiles.bk)
    params.gqa_factor = try Derived.fill(
      params.gqa_factor, "gqa_factor", params.H / Int32(truncatingIfNeeded: nKvHeads), "H / nKvHeads")
    params.NQ = try Derived.fill(params.NQ, "NQ", (qL - 1) / bq + 1, "ceil(qL / BQ)")
    params.NK = try Derived.fill(params.NK, "NK", (kL - 1) / bk + 1, "ceil(kL / BK)")
    params.NQ_aligned = try Derived.fill(params.NQ_aligned, "NQ_aligned", qL / bq, "floor(qL / BQ)")
    params.NK_aligned = try Derived.fill(params.NK_aligned, "NK_aligned", kL / bk, "floor(kL / BK)")
    params.qL_rem = try Derived.fill(params.qL_rem, "qL_rem", qL % bq, "qL mod BQ")
    params.kL_rem = try Derived.fill(params.kL_rem, "kL_rem", kL % bk, "kL mod BK")
  }

  @inline(__always)
  private static func positive(_ value: Int32, _ name: Argument) throws(StatusError) {
    try require(value > 0, StatusCode.invalidArgument, "\(name) is \(value); it is at least 1")
  }
}
