import CMetalAttention

/// Checks of the numbers in `FlashAttnDecodeParams`, apart from any tensor.
enum DecodeParams {
  private static let mostPositions = CacheRange.mostPositions
  static let mostQueryRows: UInt32 = 16
  static let mostTreeColumns: UInt32 = 32

  /// - Parameters:
  ///   - hasLengths: whether the lengths are known to the device alone.
  ///   - hasTable: whether the cache is pages.
  @inline(__always)
  static func check(
    _ params: FlashAttnDecodeParams, batch: UInt32, hasLengths: Bool, hasTable: Bool
  ) throws(StatusError) {
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
    try positive(params.capacity, "capacity")
    try CacheRange.requirePositions(params.capacity, "capacity")
    let isRing = try CacheRange.isRing(params.is_sliding, "is_sliding")
    if !hasLengths {
      try require(
        isRing || params.seq_len <= params.capacity, StatusCode.overflow,
        "\(arg: "seq_len") \(params.seq_len) exceeds \(arg: "capacity") \(params.capacity); a linear cache ends there, \(arg: "is_sliding") makes it a ring"
      )
      try CacheRange.requirePositions(params.seq_len, "seq_len")
    }
    try checkScores(params)
    try BlockTable.checkPages(
      of: params.page_tokens, "page_tokens", pool: params.n_pages, "n_pages", capacity: params.capacity, "capacity",
      hasTable: hasTable)
    try BlockTable.requireNoRing(isRing, hasTable: hasTable)
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
  private static func positive(_ value: UInt32, _ name: Argument) throws(StatusError) {
    try require(value > 0, StatusCode.invalidArgument, "\(name) is 0; it is at least 1")
  }
}
