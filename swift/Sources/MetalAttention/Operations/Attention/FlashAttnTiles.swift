/// How `flash_attn_prefill` cuts its work for a head size.
struct FlashAttnTiles {
  /// Query rows and key columns of a tile.
  let bq: Int32
  let bk: Int32
  /// SIMD groups of a threadgroup along query rows and key columns.
  let wm: UInt32
  let wn: UInt32

  /// Bytes of threadgroup memory: rows of 16-bit elements, padded by 16 bytes.
  /// K and V take turns in one tile where two do not fit beside Q.
  func threadgroupMemory(_ headDim: Int32) -> Int32 {
    let rowBytes = (headDim + 8) * 2
    let separate = (bq + 2 * bk) * rowBytes
    return separate <= 32768 ? separate : (bq + bk) * rowBytes
  }

  /// The geometry for a head size that has kernels. At D = 512 a tile of 32 rows
  /// would leave 32 KiB of threadgroup memory.
  static func forHeadDim(_ headDim: Int32) -> FlashAttnTiles {
    headDim <= 256 ? FlashAttnTiles(bq: 32, bk: 16, wm: 4, wn: 1) : FlashAttnTiles(bq: 8, bk: 8, wm: 1, wn: 1)
  }
}
