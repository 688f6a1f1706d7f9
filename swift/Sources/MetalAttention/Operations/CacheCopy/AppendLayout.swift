import CMetalAttention

/// What an append reads and writes of its tensors, whose lengths have been checked.
struct AppendLayout {
  private let source: Count
  private let cache: Count
  /// Of each cache: the slots written, or all where only the device knows them.
  private let written: HeadMajor.Slots

  /// - Parameter isFixed: whether positions follow one another from `start` on.
  init(
    _ params: KvCacheAppendParams, _ k: CopyStream, _ v: CopyStream?, hasPages: Bool, isFixed: Bool, isRing: Bool
  ) throws(StatusError) {
    try BlockTable.checkPages(
      of: params.pageTokens, "pageTokens", pool: params.nPages, "nPages", capacity: params.capacity, "capacity",
      hasTable: hasPages)
    try require(
      isFixed || params.start == 0, StatusCode.invalidArgument,
      "\(arg: "start") is \(params.start), but \(TensorName.positions) say where tokens go; it is 0 then")
    // What positions in device memory come to is checked there; no two tokens may have one slot, and some may have none.
    if isFixed {
      try CacheRange.requireRun(
        of: params.nTokens, "nTokens", from: params.start, "start", capacity: params.capacity, "capacity",
        of: k.cache.name, isRing: isRing, "isSliding")
    } else {
      try CacheRange.requireSlots(params.capacity, "capacity", of: k.cache.name)
    }
    let heads = Count(params.batch) * params.nHeads
    source = heads * params.nTokens * params.headDim
    cache =
      hasPages
      ? Count(params.nPages) * params.nHeads * params.pageTokens * params.headDim
      : heads * params.capacity * params.headDim
    try CopyStream.requireRoom(
      in: k, v,
      source: source,
      "\(arg: "batch") \(params.batch) x \(arg: "nTokens") \(params.nTokens) x \(arg: "nHeads") \(params.nHeads) x \(arg: "headDim") \(params.headDim)",
      cache: cache,
      hasPages
        ? "\(arg: "nPages") \(params.nPages) x \(arg: "nHeads") \(params.nHeads) x \(arg: "pageTokens") \(params.pageTokens) x \(arg: "headDim") \(params.headDim)"
        : "\(arg: "batch") \(params.batch) x \(arg: "nHeads") \(params.nHeads) x \(arg: "capacity") \(params.capacity) x \(arg: "headDim") \(params.headDim)"
    )
    let isNothing = source.value == 0
    written =
      hasPages || !isFixed || isNothing
      ? HeadMajor.Slots(elements: 0..<cache.value)
      : HeadMajor(
        nHeads: params.batch * params.nHeads, capacity: params.capacity, rowSize: params.headDim
      ).slots(params.nTokens, from: params.start)
  }

  /// A stream's tensors in the order of the kernel's arguments.
  func uses(of stream: CopyStream) -> [TensorUse] {
    [
      .whole(stream.source, isWrite: false, elements: source.value),
      TensorUse(tensor: stream.cache, isWrite: true, elements: cache.value, touched: written),
    ]
  }

  /// The same, for the kernel of a plain copy.
  func extent(_ params: KvCacheAppendParams) -> CopyExtent {
    CopyExtent(
      source: source.value, cache: cache.value, read: 0..<source.value, written: written, rowSize: params.headDim,
      rows: params.batch * params.nHeads, planes: params.nTokens)
  }
}
