import CMetalAttention

/// How decode attention cuts its work; nothing of it changes a bit of the result.
struct DecodeGeometry {
  /// Keys of a block of lanes, which two SIMD groups attend over, as the shader has it.
  static let blockKeys: UInt64 = 256
  /// Keys of a block of matrices, which the SIMD groups of a threadgroup share, as the shader has it.
  private static let matrixBlockKeys: UInt64 = 1024

  /// Blocks that a sequence may have, those of the window and of the ring alone.
  let blocks: UInt32
  /// Which of the tiles of `DecodeKernel.tileQueries`.
  let tile: Int
  /// Tiles of the queries that share a head of K and V.
  let tiles: UInt32
  /// SIMD groups in a threadgroup: in lanes two for a tile of a block, of matrices one for each query of a tile.
  let simdGroups: UInt32
  private let form: DecodeForm

  /// - Parameters:
  ///   - form: how keys are multiplied.
  ///   - hasLengths: whether the lengths are known to the device alone.
  ///   - cores: of the device.
  @inline(__always)
  init(_ params: FlashAttnDecodeParams, _ form: DecodeForm, batch: UInt32, hasLengths: Bool, cores: UInt32) {
    self.form = form
    let keys = form == .lanes ? Self.blockKeys : Self.matrixBlockKeys
    blocks = Self.blocks(params, hasLengths: hasLengths, of: keys)
    let queries = params.n_heads / params.n_kv_heads * params.n_q
    tile = queries == 1 ? 0 : 1
    switch form {
    case .lanes:
      tiles = (queries - 1) / DecodeKernel.tileQueries(params.head_dim, tile) + 1
      simdGroups =
        2
        * Self.pairs(
          units: UInt64(blocks) * UInt64(tiles), rows: UInt64(params.n_kv_heads) * UInt64(batch),
          cores: UInt64(max(1, cores)))
    case .matrices:
      tiles = (queries - 1) / Self.matrixQueries + 1
      // Each begins and ends one of the queries for all.
      simdGroups = Self.matrixQueries
    }
  }

  /// Queries of a tile of matrices, as the shader has it.
  private static let matrixQueries: UInt32 = 4

  /// Threadgroups that a head of K and V of a sequence takes.
  /// - Parameter simdGroups: in each, as many as the pipeline allows.
  @inline(__always)
  func threadgroups(of simdGroups: UInt32) -> UInt32 {
    switch form {
    case .lanes: (blocks * tiles - 1) / (simdGroups / 2) + 1
    case .matrices: blocks * tiles
    }
  }

  /// Pairs of SIMD groups in a threadgroup, which exchange nothing. Two of them share the cache of one core, which the
  /// tiles of a block profit from, and cost one launch; but a core takes whole threadgroups, so it is one where two would
  /// leave the busiest core more of them.
  ///
  /// - Parameters:
  ///   - units: pairs of a row of the grid.
  ///   - rows: of the grid.
  @inline(__always)
  private static func pairs(units: UInt64, rows: UInt64, cores: UInt64) -> UInt32 {
    let alone = (units * rows + cores - 1) / cores
    let together = ((units + 1) / 2 * rows + cores - 1) / cores * 2
    return together <= alone ? 2 : 1
  }

  /// - Parameter keys: of a block.
  private static func blocks(_ params: FlashAttnDecodeParams, hasLengths: Bool, of keys: UInt64) -> UInt32 {
    let capacity = UInt64(params.capacity)
    let isRing = params.is_sliding != 0
    // Keys that any row sees: the window of each reaches back from another position.
    let seen = params.window == 0 ? capacity : min(capacity, UInt64(params.window) + UInt64(params.n_q) - 1)
    if hasLengths {
      // Wherever they begin among the blocks.
      let anywhere = (seen + 2 * keys - 2) / keys
      let fromStart = (capacity + keys - 1) / keys
      let isAligned = !isRing && params.window == 0
      return UInt32(max(1, isAligned ? fromStart : isRing ? anywhere : min(anywhere, fromStart)))
    }
    let length = UInt64(params.seq_len)
    if length == 0 { return 1 }
    let first = length - min(length, seen)
    return UInt32((length - 1) / keys - first / keys + 1)
  }
}
