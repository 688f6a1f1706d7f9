import CMetalAttention

/// Checks of the numbers in `FlashAttnDecodeParams`, apart from any tensor.
enum DecodeParams {
  /// Positions that kernels count in 32 bits with room for sums.
  static let mostPositions: UInt32 = 1 << 30
  static let mostQueryRows: UInt32 = 16
  static let mostTreeColumns: UInt32 = 32

  @inline(__always)
  static func check(_ params: FlashAttnDecodeParams, batch: UInt32, hasLengths: Bool) throws(StatusError) {
    try positive(batch, "batch")
    try positive(params.n_heads, "n_heads")
    try positive(params.n_kv_heads, "n_kv_heads")
    try positive(params.n_q, "n_q")
    try require(
      params.n_heads % params.n_kv_heads == 0, StatusCode.invalidArgument,
      "\(arg: "n_heads") \(params.n_heads) is not a multiple of \(arg: "n_kv_heads") \(params.n_kv_heads)")
    try require(
      params.n_q <= mostQueryRows, StatusCode.unsupported,
      "\(arg: "n_q") is \(params.n_q); decode takes 1 to \(mostQueryRows) query rows, ma_flash_attn_prefill any number")
    try require(
      params.capacity > 0 && params.capacity <= mostPositions, StatusCode.invalidArgument,
      "\(arg: "capacity") is \(params.capacity); a cache has 1 to \(mostPositions) slots")
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    if !hasLengths {
      try require(
        isRing || params.seq_len <= params.capacity, StatusCode.overflow,
        "\(arg: "seq_len") \(params.seq_len) exceeds \(arg: "capacity") \(params.capacity); a linear cache ends there, \(arg: "is_sliding") makes it a ring"
      )
      try require(
        params.seq_len <= mostPositions, StatusCode.overflow,
        "\(arg: "seq_len") \(params.seq_len) exceeds \(mostPositions) positions")
    }
    try checkScores(params)
    try checkPages(params, isRing: isRing)
  }

  @inline(__always)
  private static func checkScores(_ params: FlashAttnDecodeParams) throws(StatusError) {
    try require(
      params.scale.isFinite && params.scale > 0, StatusCode.invalidArgument,
      "\(arg: "scale") is \(params.scale); it is finite and above 0, usually 1/sqrt(head_dim)")
    try require(
      params.softcap.isFinite && params.softcap >= 0, StatusCode.invalidArgument,
      "\(arg: "softcap") is \(params.softcap); it is finite and above 0, or 0 for none")
    try require(
      params.window <= mostPositions, StatusCode.invalidArgument,
      "\(arg: "window") is \(params.window); it is at most \(mostPositions), or 0 for none")
    try require(
      params.tree_columns <= mostTreeColumns, StatusCode.invalidArgument,
      "\(arg: "tree_columns") is \(params.tree_columns); a row of treeMask has \(mostTreeColumns) bits")
    try require(
      params.alibi_distance <= mostPositions, StatusCode.invalidArgument,
      "\(arg: "alibi_distance") is \(params.alibi_distance); it is at most \(mostPositions)")
  }

  @inline(__always)
  private static func checkPages(_ params: FlashAttnDecodeParams, isRing: Bool) throws(StatusError) {
    if params.page_tokens == 0 { return }
    try require(
      params.capacity % params.page_tokens == 0, StatusCode.invalidArgument,
      "\(arg: "capacity") \(params.capacity) is not a multiple of \(arg: "page_tokens") \(params.page_tokens)")
    try require(
      !isRing, StatusCode.unsupported, "\(arg: "is_sliding") is 1 with pages; a ring has none, a window ends the keys")
    try require(
      params.n_pages > 0 && params.n_pages <= mostPositions, StatusCode.invalidArgument,
      "\(arg: "n_pages") is \(params.n_pages); a pool has 1 to \(mostPositions) pages")
  }

  @inline(__always)
  private static func positive(_ value: UInt32, _ name: Argument) throws(StatusError) {
    try require(value > 0, StatusCode.invalidArgument, "\(name) is 0; it is at least 1")
  }
}
