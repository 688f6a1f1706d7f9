/// The kernels of decode attention: by the kinds of K and V, head size and
/// queries of a tile; and by head size what joins the blocks of a query.
enum DecodeKernel {
  static let family = KernelFamily(
    name: "flashAttnDecode",
    sources: [
      ("flash_attn_decode.metal", names + latentNames),
      ("flash_attn_decode_reduce.metal", reduceNames),
    ],
    // Formats of K and V, as `DecodeFormat.constant` has them.
    constants: [.number(420, bits: 4), .number(421, bits: 4)],
    dtypes: [.f32, .f16, .bf16],
    headDims: headDims,
    operations: [.flashAttnDecode],
    tensors: [.q, .k, .normsK, .v, .normsV, .out, .lse, .seqLens, .blockTable, .sinks, .alibiSlopes, .treeMask])

  static let headDims: [UInt32] = [64, 80, 96, 112, 128, 192, 256, 512]
  /// Of the form whose V is the first columns of K, and how many these are.
  static let latent: (headDim: UInt32, valueDim: UInt32) = (576, 512)

  /// Whether K and V are codes, in the order of names.
  static let kinds: [(name: String, k: Bool, v: Bool)] = [
    ("", false, false), ("tq_", true, true), ("hybrid_", false, true), ("hybrid_k_", true, false),
  ]

  /// Queries that a tile may have: one, where heads share no K and V, or as many
  /// as a lane has registers for.
  static func tileQueries(_ headDim: UInt32) -> [UInt32] { headDim < 512 ? [1, 4] : [1, 2] }

  /// By kind, head size and tile.
  private static let names = kinds.flatMap { kind in
    headDims.flatMap { headDim in
      tileQueries(headDim).map { "flash_attn_vec_\(kind.name)d\(headDim)_q\($0)" }
    }
  }
  private static let latentNames = tileQueries(latent.headDim).map {
    "flash_attn_vec_mla_d\(latent.headDim)_q\($0)"
  }
  private static let reduceNames = headDims.map { "flash_attn_vec_reduce_d\($0)" }

  /// Of them, in `BuiltInKernel.all`.
  private static let indices = KernelFamily.indices(of: names)
  private static let latentIndices = KernelFamily.indices(of: latentNames)
  private static let reduceIndices = KernelFamily.indices(of: reduceNames)

  /// What attends over blocks.
  /// - Parameter tile: the place of the tile's size in `tileQueries`.
  @inline(__always)
  static func attend(_ headDim: UInt32, tile: Int, k: DecodeFormat, v: DecodeFormat) -> PipelineSlot {
    let variant = Int(k.constant | v.constant << 4)
    guard let size = headDims.firstIndex(of: headDim) else {
      return PipelineSlot(kernel: Int(latentIndices[tile]), variant: variant)
    }
    let kind = k.isCoded ? (v.isCoded ? 1 : 3) : (v.isCoded ? 2 : 0)
    return PipelineSlot(kernel: Int(indices[2 * (kind * headDims.count + size) + tile]), variant: variant)
  }

  /// What joins the blocks of a query. Its constants are those of the family, of which it reads none.
  @inline(__always)
  static func reduce(_ valueDim: UInt32) -> PipelineSlot {
    PipelineSlot(kernel: Int(reduceIndices[headDims.firstIndex(of: valueDim) ?? 0]), variant: 0)
  }
}
