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
    try require(nKvHeads > 0, StatusCode.invalidArgument, "nKvHeads is 0; it is at least 1")
    try require(
      UInt32(bitPattern: params.H) % nKvHeads == 0, StatusCode.invalidArgument,
      "H \(params.H) is not a multiple of nKvHeads \(nKvHeads)")
    try require(causal <= 1, StatusCode.invalidArgument, "causal is \(causal); it is 0 or 1")
    try require(
      params.scale.isFinite && params.scale > 0, StatusCode.invalidArgument,
      "scale is \(params.scale); it is finite and above 0, usually 1/sqrt(D)")
    try require(
      params.softcapping == 1, StatusCode.unsupported,
      "softcapping is \(params.softcapping); no kernel caps scores, so it is 1")
    try require(params.qL_off >= 0, StatusCode.invalidArgument, "qL_off is \(params.qL_off); it is at least 0")
    try require(
      params.qL_off == 0 || Int64(params.qL_off) + Int64(params.qL) <= Int64(params.kL), StatusCode.invalidArgument,
      "qL_off \(params.qL_off) + qL \(params.qL) exceeds kL \(params.kL); the queries reach past the keys")
  }

  /// Checks the fields that follow from others.
  @inline(__always)
  static func checkDerived(_ params: AttnParams, nKvHeads: UInt32, _ tiles: FlashAttnTiles) throws(StatusError) {
    try equal(params.gqa_factor, params.H / Int32(truncatingIfNeeded: nKvHeads), "gqa_factor", "H / nKvHeads")
    try equal(params.NQ_aligned, params.qL / tiles.bq, "NQ_aligned", "floor(qL / BQ)")
    try equal(params.NK_aligned, params.kL / tiles.bk, "NK_aligned", "floor(kL / BK)")
    try equal(params.qL_rem, params.qL % tiles.bq, "qL_rem", "qL mod BQ")
    try equal(params.kL_rem, params.kL % tiles.bk, "kL_rem", "kL mod BK")
    try equal(params.NQ, params.NQ_aligned + (params.qL_rem > 0 ? 1 : 0), "NQ", "ceil(qL / BQ)")
    try equal(params.NK, params.NK_aligned + (params.kL_rem > 0 ? 1 : 0), "NK", "ceil(kL / BK)")
  }

  @inline(__always)
  private static func positive(_ value: Int32, _ name: StaticString) throws(StatusError) {
    try require(value > 0, StatusCode.invalidArgument, "\(name) is \(value); it is at least 1")
  }

  @inline(__always)
  private static func equal(
    _ value: Int32, _ expected: Int32, _ name: StaticString, _ formula: StaticString
  ) throws(StatusError) {
    try require(
      value == expected, StatusCode.invalidArgument, "\(name) is \(value), but \(formula) is \(expected)")
  }
}
