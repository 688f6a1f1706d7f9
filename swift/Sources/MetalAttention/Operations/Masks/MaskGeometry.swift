/// How a mask is read and cut into tiles: what tile classes are made for.
struct MaskGeometry: Equatable {
  private let dtype: DType
  private let planes: MaskPlanes
  private let rows: Int32
  private let keys: Int32
  /// In elements; 0 where there is one of the dimension.
  private let batchStride: Int64
  private let headStride: Int64
  private let rowStride: Int64
  /// Rows and keys of a tile.
  private let tileRows: Int32
  private let tileKeys: Int32

  init(
    _ dtype: DType, batches: Int32, heads: Int32, rows: Int32, keys: Int32, strides: (Int64, Int64, Int64),
    _ tiles: FlashAttnTiles
  ) {
    self.dtype = dtype
    self.rows = rows
    self.keys = keys
    planes = MaskPlanes(batches: batches, heads: heads, strides: strides)
    batchStride = batches == 1 ? 0 : strides.0
    headStride = heads == 1 ? 0 : strides.1
    rowStride = rows == 1 ? 0 : strides.2
    tileRows = tiles.bq
    tileKeys = tiles.bk
  }

  /// For messages.
  var description: Sentence {
    "\(dtype) [\(planes.batches), \(planes.heads), \(rows), \(keys)], strides \(batchStride), \(headStride), \(rowStride), "
      + "in tiles of \(tileRows) x \(tileKeys)"
  }
}
