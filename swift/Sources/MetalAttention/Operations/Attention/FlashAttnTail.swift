import CMetalAttention

/// The newest keys of a prefill apart from the others: checks of `AttnTailParams`, and which keys are where.
struct FlashAttnTail {
  let params: AttnTailParams

  @inline(__always)
  static func isGiven(_ args: MAFlashAttnPrefillArgs) -> Bool {
    Tensor.isPresent(args.tailK) || Tensor.isPresent(args.tailV)
  }

  /// The numbers of `args` apart from the tail's have been checked.
  init(_ args: MAFlashAttnPrefillArgs, _ tensors: FlashAttnTensors) throws(StatusError) {
    params = args.tail
    try require(
      tensors.tailK != nil && tensors.tailV != nil, StatusCode.invalidArgument,
      "\(tensors.tailK == nil ? TensorName.tailK : .tailV) is missing; a tail has keys and values")
    try require(
      args.causal == 1, StatusCode.invalidArgument,
      "\(TensorName.tailK) is given without \(arg: "causal"); which keys lie in a tail depends on a row's own position")
    try require(
      args.params.B == 1 && tensors.seqLens == nil && tensors.seqOffsets == nil, StatusCode.unsupported,
      "\(TensorName.tailK) is given with \(arg: "B") \(args.params.B), \(TensorName.seqLens) or \(TensorName.seqOffsets); a tail is that of one sequence"
    )
    try require(
      tensors.mask == nil, StatusCode.unsupported, "\(TensorName.mask) is given with \(TensorName.tailK); leave one out"
    )
    try Self.check(params.slots, "tail.slots", atLeast: 1)
    try Self.check(params.tokens, "tail.tokens", atLeast: 1)
    try Self.check(params.block, "tail.block", atLeast: 1)
    try Self.check(params.quantized, "tail.quantized", atLeast: 0)
    let first = params.firstKey(ofRowAt: args.params.qL_off)
    let end = Self.end(args.params)
    try require(
      end - first <= params.slots, StatusCode.invalidArgument,
      "\(arg: "tail.slots"): \(params.slots) slots, and the rows see the keys \(first) to \(end - 1) in the tail")
  }

  /// The keys, from 0 on, that some row finds before the tail: those of the last row, which may be beyond the last key.
  func keysBefore(_ params: AttnParams) -> Int32 {
    min(params.kL, self.params.firstKey(ofRowAt: Self.endOfRows(params) - 1))
  }

  /// The position after that of the last row, or of the last key.
  private static func end(_ params: AttnParams) -> Int32 {
    min(params.kL, endOfRows(params))
  }

  private static func endOfRows(_ params: AttnParams) -> Int32 {
    Int32(clamping: Int64(params.qL_off) + Int64(params.qL))
  }

  private static func check(_ value: Int32, _ name: Argument, atLeast least: Int32) throws(StatusError) {
    let most = CacheRange.mostPositions
    try require(
      value >= least && value <= most, StatusCode.invalidArgument,
      "\(name) is \(value); it is \(least) to \(most)")
  }
}

extension AttnTailParams {
  /// What the kernels call `first_of_tail`.
  fileprivate func firstKey(ofRowAt position: Int32) -> Int32 {
    let left = max(0, position + 1 - tokens) / block * block
    return min(max(quantized, left), position + 1)
  }
}
