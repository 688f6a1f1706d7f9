import CMetalAttention

extension RopeTable {
  /// What turns K on its way into a cache; nil where `rotaryDim` is 0, and it stays as it is.
  /// - Parameters:
  ///   - offset: what a position is ahead by for its angle.
  ///   - start: position of the first of `count` tokens; nil where positions in device memory say it.
  static func ofWrite(
    rotaryDim: UInt32, headDim: UInt32, attentionScale: Float, offset: Int32, pairing: UInt32,
    invFreq: UnsafeRawPointer?, invFreqCount: UInt64, from start: UInt32?, _ startName: Argument, count: UInt32,
    _ countName: Argument
  ) throws(StatusError) -> RopeTable? {
    if rotaryDim == 0 {
      try require(
        pairing == 0 && invFreq == nil && invFreqCount == 0 && offset == 0, StatusCode.invalidArgument,
        "\(arg: "rotaryDim") is 0: K does not turn; \(arg: "pairing"), \(arg: "invFreq") and \(arg: "ropeOffset") are 0 then"
      )
      return nil
    }
    let table = try RopeTable(
      rotaryDim: rotaryDim, headDim: headDim, attentionScale: attentionScale, pairing: pairing, invFreq: invFreq,
      invFreqCount: invFreqCount)
    let most = maxPosition
    try require(
      abs(Int64(offset)) <= most, StatusCode.overflow,
      "\(arg: "ropeOffset") is \(offset); a position is within \(most) of 0")
    guard let start else { return table }
    let first = Int64(start) + Int64(offset)
    try require(
      count == 0 || first >= -most && first + Int64(count) - 1 <= most, StatusCode.overflow,
      "\(startName) \(start) + \(arg: "ropeOffset") \(offset) + \(countName) \(count): a position that turns is within \(most) of 0"
    )
    return table
  }
}
