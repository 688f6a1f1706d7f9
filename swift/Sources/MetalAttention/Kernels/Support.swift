/// What the kernel families serve, as `ma_support_json` gives it: the tables
/// that the operations themselves choose from.
enum Support {
  static let json = JSON.object([
    ("flashAttnPrefill", JSON.array(FlashAttnKernel.supportRows)),
    ("flashAttnDecode", JSON.array(DecodeKernel.supportRows)),
    ("cacheCopy", JSON.array(CopyKernel.supportRows)),
    ("quantizedCache", HadamardKernel.support),
    ("masks", JSON.object([("dtypes", JSON.array(MaskKernel.dtypes.map { JSON.string("\($0)") }))])),
  ])
}

extension FlashAttnKernel {
  /// A row for each dtype, head size and mask.
  fileprivate static var supportRows: [String] {
    dtypes.flatMap { dtype in headDims.flatMap { headDim in row(dtype, headDim) } }
  }

  private static func row(_ dtype: DType, _ headDim: Int32) -> [String] {
    let tiles = FlashAttnTiles.forHeadDim(headDim)
    return ["none", "additive", "bool"].map { mask in
      JSON.object([
        ("dtype", JSON.string("\(dtype)")), ("headDim", "\(headDim)"), ("mask", JSON.string(mask)),
        ("kernel", JSON.string(name(dtype, headDim, isBoolMask: mask == "bool"))),
        ("queryTile", "\(tiles.bq)"), ("keyTile", "\(tiles.bk)"), ("simdgroups", "\(tiles.wm * tiles.wn)"),
        ("threadgroupMemory", "\(tiles.threadgroupMemory(headDim))"),
      ])
    }
  }
}

extension DecodeKernel {
  /// A row for each kernel that attends.
  fileprivate static var supportRows: [String] {
    attendTable.entries.map { place, name in
      let headDim = headDims[place[1]]
      return row(name, k: kinds[place[0]].k, v: kinds[place[0]].v, headDim, headDim, tile: place[2])
    }
      + latentTable.entries.map { place, name in
        row(name, k: false, v: false, latent.headDim, latent.valueDim, tile: place[0])
      }
  }

  private static func row(
    _ kernel: String, k: Bool, v: Bool, _ headDim: UInt32, _ valueDim: UInt32, tile: Int
  ) -> String {
    JSON.object([
      ("k", JSON.string(k ? "codes" : "dense")), ("v", JSON.string(v ? "codes" : "dense")), ("headDim", "\(headDim)"),
      ("valueDim", "\(valueDim)"), ("kernel", JSON.string(kernel)), ("queryTile", "\(tileQueries(headDim, tile))"),
      ("keyTile", "\(DecodeGeometry.blockKeys)"), ("threadgroupMemory", "0"),
    ])
  }
}

extension CopyKernel {
  /// A row for each kernel.
  fileprivate static var supportRows: [String] {
    table.entries.map { place, name in
      JSON.object([
        ("kernel", JSON.string(name)), ("layout", JSON.string("\(Layout.allCases[place[0]])")),
        ("source", JSON.string("\(dtypes[place[1]])")), ("cache", JSON.string("\(dtypes[place[2]])")),
        ("dual", "\(place[3] == 1)"),
      ])
    }
  }
}

extension HadamardKernel {
  fileprivate static var support: String {
    JSON.object([
      ("headDims", JSON.array(headDims.map { "\($0)" })),
      (
        "otherHeadDims",
        JSON.object([("least", "\(otherHeadDims.lowerBound)"), ("most", "\(otherHeadDims.upperBound)")])
      ),
      (
        "packings",
        JSON.array(
          Packing.allCases.map { packing in
            JSON.object([
              ("packing", JSON.string("\(packing)")), ("bits", JSON.array(packing.widths.map { "\($0)" })),
            ])
          })
      ),
    ])
  }
}
