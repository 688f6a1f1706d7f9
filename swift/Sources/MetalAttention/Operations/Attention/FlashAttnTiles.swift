/// How `flash_attn_prefill` partitions its work for a head size.
struct FlashAttnTiles {
  /// Query rows and key columns of a tile.
  let bq: Int32
  let bk: Int32
  /// SIMD groups of a threadgroup along query rows and the values of a head.
  let wm: UInt32
  let wn: UInt32

  /// Bytes of threadgroup memory: rows of 16-bit elements, padded by 16 bytes, and
  /// the scores that SIMD groups with parts of a row exchange. K and V have a tile each,
  /// beside as many columns of Q as there is room for, in sixteens. Where there is none,
  /// SIMD groups share no tile, and have halves of K, of V and of Q.
  func threadgroupMemory(_ headDim: Int32) -> Int32 {
    let parts = Int32(wn)
    let columns = headDim / parts
    let scores = parts == 1 ? 0 : parts * bq * bk * 4
    func rows(_ count: Int32, of columns: Int32) -> Int32 { parts * count * (columns + 8) * 2 }
    let keys = rows(2 * bk, of: columns)
    let room = 32768 - scores - keys
    if room < 0 { return rows(bq + 2 * bk, of: columns / 2) + scores }
    let columnsOfQ = (room / (parts * bq * 2) - 8) / 16 * 16
    return rows(bq, of: min(columns, columnsOfQ)) + keys + scores
  }

  /// The geometry for a head size that has kernels: as many rows and keys as 32 KiB of threadgroup memory and the
  /// registers of four SIMD groups have room for; 32 keys at D = 128 spill, and are no faster in causal prompts.
  static func forHeadDim(_ headDim: Int32) -> FlashAttnTiles {
    switch headDim {
    case ...112: FlashAttnTiles(bq: 64, bk: 32, wm: 4, wn: 1)
    case ...128: FlashAttnTiles(bq: 64, bk: 16, wm: 4, wn: 1)
    case ...256: FlashAttnTiles(bq: 32, bk: 16, wm: 2, wn: 2)
    default: FlashAttnTiles(bq: 16, bk: 16, wm: 1, wn: 4)
    }
  }
}
