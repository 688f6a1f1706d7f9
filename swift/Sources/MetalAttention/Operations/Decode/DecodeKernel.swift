/// The kernels of decode attention: by the kinds of K and V, head size and
/// queries of a tile; and by head size what joins the blocks of a query.
enum DecodeKernel {
  static let family = KernelFamily(
    sources: [
      ("flash_attn_decode.metal", attendTable.names + latentTable.names),
      ("flash_attn_decode_matrices.metal", matrixTable.names),
      ("flash_attn_decode_reduce.metal", reduceTable.names),
    ],
    // Formats of K and V, as `DecodeFormat.constant` has them; whether the first rows of both are aligned.
    constants: [.number(420, bits: 4), .number(421, bits: 4), 422],
    dtypes: [.f32, .f16, .bf16],
    headDims: headDims,
    filesOfSIMDGroups: [
      "flash_attn_decode.metal", "flash_attn_decode_matrices.metal", "flash_attn_decode_reduce.metal",
    ])

  static let headDims: [UInt32] = [64, 80, 96, 112, 128, 192, 256, 512]
  private static let headDimPlaces = ConstantList(headDims)

  /// The place of a head size in `headDims`; nil where it has no kernel.
  @inline(__always)
  static func place(_ headDim: UInt32) -> Int? { headDimPlaces.firstIndex(of: headDim) }

  /// Of the form whose V is the first columns of K, and how many these are.
  static let latent: (headDim: UInt32, valueDim: UInt32) = (576, 512)

  /// Whether K and V are codes, in the order of names.
  static let kinds: [(name: String, k: Bool, v: Bool)] = [
    ("", false, false), ("tq_", true, true), ("hybrid_", false, true), ("hybrid_k_", true, false),
  ]

  /// Queries that a tile may have: one, where heads share no K and V, or as many
  /// as a lane has registers for.
  @inline(__always)
  static func tileQueries(_ headDim: UInt32, _ tile: Int) -> UInt32 { tile == 0 ? 1 : headDim < 512 ? 4 : 2 }

  /// By kind, head size and tile.
  static let attendTable = KernelTable(kinds.count, headDims.count, 2) { place in
    let headDim = headDims[place[1]]
    return "flash_attn_vec_\(kinds[place[0]].name)d\(headDim)_q\(tileQueries(headDim, place[2]))"
  }
  /// By tile.
  static let latentTable = KernelTable(2) { place in
    "flash_attn_vec_mla_d\(latent.headDim)_q\(tileQueries(latent.headDim, place[0]))"
  }
  /// By products of matrices: by the place of `matrixKind`, and head size.
  static let matrixTable = KernelTable(matrixKinds.count, headDims.count) { place in
    let headDim = headDims[place[1]]
    return matrixHeadDims.contains(headDim) ? "flash_attn_vec_\(matrixKinds[place[0]])matrices_d\(headDim)" : nil
  }
  private static let matrixKinds = [
    "", "bf16_", "tq_", "hb_", "hybrid_", "hybrid_bf16_", "hybrid_k_", "hybrid_k_bf16_",
  ]

  /// Which of the kinds of matrices K and V are: f16 or bf16 in both, codes of up to 4 bits in both or of more in one of
  /// them, codes in V or in K beside f16 or bf16.
  @inline(__always)
  private static func matrixKind(_ k: DecodeFormat, _ v: DecodeFormat) -> Int? {
    guard let elementsOfK = k.elements, let elementsOfV = v.elements else { return nil }
    if k.isCoded { return v.isCoded ? (k.isWide || v.isWide ? 3 : 2) : 6 + elementsOfV }
    if v.isCoded { return 4 + elementsOfK }
    return elementsOfK == elementsOfV ? elementsOfK : nil
  }

  /// Head sizes of which a lane has whole words of a row, and registers for its sums.
  private static let matrixHeadDims: [UInt32] = [64, 128]
  /// By head size.
  private static let reduceTable = KernelTable(headDims.count) { "flash_attn_vec_reduce_d\(headDims[$0[0]])" }

  private static let attendIndices = attendTable.indices
  private static let latentIndices = latentTable.indices
  private static let matrixIndices = matrixTable.indices
  private static let reduceIndices = reduceTable.indices

  /// How keys are multiplied: of the arguments alone, never of lengths or numbers of queries, since the two ways round
  /// in their own manner.
  @inline(__always)
  static func form(_ headDim: UInt32, k: DecodeFormat, v: DecodeFormat, on device: Device) -> DecodeForm {
    let isMatrix =
      device.hasMatrixUnits && matrixKind(k, v) != nil && place(headDim).flatMap { matrixIndices[0, $0] } != nil
    return isMatrix ? .matrices : .lanes
  }

  /// What attends over blocks.
  /// - Parameter tile: which of a head size's tiles.
  @inline(__always)
  static func attend(
    _ headDim: UInt32, _ form: DecodeForm, tile: Int, k: DecodeStream, v: DecodeStream
  ) throws(StatusError) -> PipelineSlot {
    let kind = k.format.isCoded ? (v.format.isCoded ? 1 : 3) : (v.format.isCoded ? 2 : 0)
    let size = place(headDim)
    let sized = size.map {
      form == .matrices ? matrixIndices[matrixKind(k.format, v.format) ?? 0, $0] : attendIndices[kind, $0, tile]
    }
    guard let kernel = sized ?? latentIndices[tile] else {
      throw unsupported(headDim)
    }
    // A lane reads up to 16 bytes of a row at once.
    let isAligned = (k.rows.offset | v.rows.offset) % 16 == 0
    return PipelineSlot(
      kernel: kernel, variant: Int(k.format.constant | v.format.constant << 4 | (isAligned ? 1 : 0) << 8))
  }

  /// What joins the blocks of a query. Its constants are those of the family, of which it reads none.
  @inline(__always)
  static func reduce(_ valueDim: UInt32) throws(StatusError) -> PipelineSlot {
    guard let size = place(valueDim), let kernel = reduceIndices[size] else {
      throw unsupported(valueDim)
    }
    return PipelineSlot(kernel: kernel, variant: 0)
  }

  @inline(never)
  private static func unsupported(_ headDim: UInt32) -> StatusError {
    StatusError(
      StatusCode.unsupported, "\(arg: "head_dim") is \(headDim); supported: \(family.headDimList) and \(latent.headDim)"
    )
  }
}
