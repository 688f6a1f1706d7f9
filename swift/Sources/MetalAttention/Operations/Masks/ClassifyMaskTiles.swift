import CMetalAttention

/// `ma_classify_mask_tiles`: a byte for each tile of a mask.
enum ClassifyMaskTiles {
  private static let keysPerSIMDGroup: UInt32 = 32
  private static let simdGroupsPerThreadgroup: UInt32 = 8

  static func encode(_ args: MAClassifyMaskTilesArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let mask = try Tensor(args.mask, .mask, in: pass)
    let tileClasses = try Tensor(args.tileClasses, .tileClasses, in: pass)
    try tileClasses.requireDType(.u8)
    let headDim = Int32(truncatingIfNeeded: args.headDim)
    let tiles = FlashAttnTiles.forHeadDim(headDim)
    guard FlashAttnKernel.headDims.contains(headDim), let task = MaskKernel.Task.classify(tiles) else {
      throw StatusError(
        StatusCode.unsupported, "\(arg: "headDim") is \(args.headDim); supported: \(FlashAttnKernel.family.headDimList)"
      )
    }
    let kernel = try MaskKernel.index(task, mask.dtype)
    try fill(&params, tiles)

    let rows = (batch: params.B, heads: params.H, rows: params.qL)
    let extent = try AttnExtent("M_strides", rows, params.M_strides, params.kL)
    let maskElements = extent.elements
    try mask.requireRoom(for: maskElements, extent.formula)
    let planes = MaskPlanes(batches: params.B, heads: params.H, strides: params.M_strides)
    let classes = planes.tiles(params.NQ, params.NK)
    try tileClasses.requireRoom(for: classes, planes.formula(params.NQ, params.NK))
    let planeCount = planes.count
    try require(
      !planeCount.overflowed && planeCount.value <= UInt64(UInt32.max), StatusCode.overflow,
      "\(arg: "mask") has \(arg: "B") \(params.B) x \(arg: "H") \(params.H) planes, above \(UInt32.max)")
    let read = mask.access(0..<maskElements.value, isWrite: false)
    let written = tileClasses.access(0..<classes.value, isWrite: true)
    try written.requireApart(.tileClasses, from: read, .mask)

    let slot = PipelineSlot(kernel: kernel, variant: 0)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    encoder.bind(mask.buffer, offset: mask.offset, at: 0)
    encoder.bind(tileClasses.buffer, offset: tileClasses.offset, at: 1)
    encoder.bind(params, at: 2)
    encoder.note(read)
    encoder.note(written)
    let keys = keysPerSIMDGroup * simdGroupsPerThreadgroup
    encoder.dispatch(
      .classifyMaskTiles, .threadgroups,
      grid: GridSize(
        (UInt32(bitPattern: params.kL) - 1) / keys + 1, UInt32(bitPattern: params.NQ),
        UInt32(truncatingIfNeeded: planeCount.value)),
      threads: GridSize(keysPerSIMDGroup, simdGroupsPerThreadgroup, 1))
    pass.addTileClasses(
      written, of: read,
      MaskGeometry(
        mask.dtype, batches: params.B, heads: params.H, rows: params.qL, keys: params.kL, strides: params.M_strides,
        tiles))
    return nil
  }

  private static func fill(_ params: inout ClassifyMaskParams, _ tiles: FlashAttnTiles) throws(StatusError) {
    let extents: [(Int32, Argument)] = [(params.B, "B"), (params.H, "H"), (params.qL, "qL"), (params.kL, "kL")]
    for (value, name) in extents {
      try require(value > 0, StatusCode.invalidArgument, "\(name) is \(value); it is at least 1")
    }
    params.NQ = try Derived.fill(params.NQ, "NQ", (params.qL - 1) / tiles.bq + 1, "ceil(qL / BQ)")
    params.NK = try Derived.fill(params.NK, "NK", (params.kL - 1) / tiles.bk + 1, "ceil(kL / BK)")
  }
}
