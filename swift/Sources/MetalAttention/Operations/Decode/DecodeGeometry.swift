import CMetalAttention

/// How decode attention cuts its work; nothing of it changes a bit of the result.
struct DecodeGeometry {
  /// Keys of a block, as the shader has it.
  static let blockKeys: UInt64 = 256
  /// SIMD groups that share a block, as the shader has it: half of its keys each. A sequence has few blocks
  /// and a device many places, and with more of them what they exchange costs more than it saves.
  static let simdgroups: UInt32 = 2
  /// SIMD groups that join the blocks of a query, as the shader has it.
  static let joiners: UInt32 = 4

  /// Blocks that a sequence may have, those of the window and of the ring alone.
  let blocks: UInt32
  /// Which of the tiles of `DecodeKernel.tileQueries`.
  let tile: Int
  /// Tiles of the queries that share a head of K and V.
  let tiles: UInt32

  /// - Parameter hasLengths: whether the lengths are known to the device alone.
  @inline(__always)
  init(_ params: FlashAttnDecodeParams, hasLengths: Bool) {
    blocks = Self.blocks(params, hasLengths: hasLengths)
    let queries = params.n_heads / params.n_kv_heads * params.n_q
    tile = queries == 1 ? 0 : 1
    let size = DecodeKernel.tileQueries(params.head_dim, tile)
    tiles = (queries - 1) / size + 1
  }

  private static func blocks(_ params: FlashAttnDecodeParams, hasLengths: Bool) -> UInt32 {
    let capacity = UInt64(params.capacity)
    let isRing = params.is_sliding != 0
    // Keys that any row sees: the window of each reaches back from another position.
    let seen = params.window == 0 ? capacity : min(capacity, UInt64(params.window) + UInt64(params.n_q) - 1)
    if hasLengths {
      // Wherever they begin among the blocks.
      let anywhere = (seen + 2 * blockKeys - 2) / blockKeys
      let fromStart = (capacity + blockKeys - 1) / blockKeys
      let isAligned = !isRing && params.window == 0
      return UInt32(max(1, isAligned ? fromStart : isRing ? anywhere : min(anywhere, fromStart)))
    }
    let length = UInt64(params.seq_len)
    if length == 0 { return 1 }
    let first = length - min(length, seen)
    return UInt32((length - 1) / blockKeys - first / blockKeys + 1)
  }
}
