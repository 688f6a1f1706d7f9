import CMetalAttention

/// What a prefill has beside a mask: checks of `AttnOptionParams`, whose tensors are checked elsewhere.
enum FlashAttnOptions {
  private static let mostPositions = CacheRange.mostPositions

  /// Whether there is anything that the kernels without options cannot do.
  @inline(__always)
  static func arePresent(_ args: MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors) -> Bool {
    let options = args.options
    return options.window != 0 || options.softcap != 0 || options.is_sliding != 0 || args.packedKeys != 0
      || options.page_tokens != 0 || options.n_pages != 0 || options.capacity != 0 || tensors.hasOptions
      || FlashAttnTail.isGiven(args)
  }

  /// Checks them and fills the fields that follow from others.
  static func complete(_ args: inout MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors) throws(StatusError) {
    let params = args.params
    let options = args.options
    try require(
      options.window >= 0 && options.window <= mostPositions, StatusCode.invalidArgument,
      "\(arg: "window") is \(options.window); it is 1 to \(mostPositions), or 0 for none")
    try require(
      options.window == 0 || args.causal == 1, StatusCode.invalidArgument,
      "\(arg: "window") \(options.window) without \(arg: "causal"); a window ends at a row's own position, so give both"
    )
    try require(
      options.softcap.isFinite && options.softcap >= 0, StatusCode.invalidArgument,
      "\(arg: "softcap") is \(options.softcap); it is finite and above 0, or 0 for none")
    try CacheRange.requirePositions(params.kL, "kL")
    try checkSequences(args, tensors)
    try checkCache(&args.options, kL: params.kL, hasTable: tensors.blockTable != nil)
    args.options.present = try Derived.fill(
      options.present, "present", present(args, tensors), "what is given")
  }

  private static func checkSequences(
    _ args: MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors
  ) throws(StatusError) {
    let params = args.params
    let hasOffsets = tensors.seqOffsets != nil
    let ownsCache = args.options.is_sliding != 0 || tensors.blockTable != nil
    try require(
      args.packedKeys <= 1, StatusCode.invalidArgument, "\(arg: "packedKeys") is \(args.packedKeys); it is 0 or 1")
    if args.packedKeys == 1 {
      try require(
        hasOffsets && tensors.seqLens == nil && !ownsCache, StatusCode.invalidArgument,
        "\(TensorName.k): packed keys go with \(TensorName.seqOffsets), and without \(TensorName.seqLens), \(arg: "is_sliding") and \(TensorName.blockTable)"
      )
      try require(
        params.kL == params.qL, StatusCode.invalidArgument,
        "\(arg: "kL") \(params.kL) is not \(arg: "qL") \(params.qL); packed keys are those of the rows of q")
    }
    try require(
      params.qL_off == 0 || (tensors.seqLens == nil && !hasOffsets), StatusCode.invalidArgument,
      "\(arg: "qL_off") \(params.qL_off) is given with sequences of their own lengths, whose last rows have the last keys; leave it out"
    )
    try require(
      tensors.mask == nil || (tensors.seqLens == nil && !hasOffsets && !ownsCache), StatusCode.unsupported,
      "\(TensorName.mask) is given with \(TensorName.seqLens), \(TensorName.seqOffsets), \(TensorName.blockTable) or a ring; a mask has one plane of rows and keys, which these have not"
    )
  }

  private static func checkCache(
    _ options: inout AttnOptionParams, kL: Int32, hasTable: Bool
  ) throws(StatusError) {
    let isRing = options.is_sliding == 1
    try require(
      options.is_sliding == 0 || isRing, StatusCode.invalidArgument,
      "\(arg: "is_sliding") is \(options.is_sliding); it is 0 or 1")
    try BlockTable.checkPages(
      of: options.page_tokens, "page_tokens", pool: options.n_pages, "n_pages", capacity: options.capacity, "capacity",
      hasTable: hasTable)
    try BlockTable.requireNoRing(isRing, hasTable: hasTable)
    if !isRing && !hasTable {
      options.capacity = try Derived.fill(options.capacity, "capacity", kL, "kL where there are no ring and no pages")
      return
    }
    try require(
      options.capacity > 0, StatusCode.invalidArgument,
      "\(arg: "capacity") is \(options.capacity); a ring or the pages of a sequence have at least 1 slot")
    try CacheRange.requirePositions(options.capacity, "capacity")
    try require(
      isRing || kL <= options.capacity, StatusCode.overflow,
      "\(arg: "kL") \(kL) exceeds \(arg: "capacity") \(options.capacity); only a ring goes on")
  }

  /// MA_ATTN_*.
  private static func present(_ args: MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors) -> UInt32 {
    func bit(_ option: AttnOption, _ isThere: Bool) -> UInt32 { isThere ? option.rawValue : 0 }
    return bit(.causal, args.causal == 1) | bit(.sinks, tensors.sinks != nil)
      | bit(.alibi, tensors.alibiSlopes != nil) | bit(.lse, tensors.lse != nil)
      | bit(.seqLens, tensors.seqLens != nil) | bit(.seqOffsets, tensors.seqOffsets != nil)
      | bit(.packedKeys, args.packedKeys == 1)
  }
}
