import CMetalAttention

/// What turns head vectors: frequencies, pairing and how many coordinates turn, checked.
struct RopeTable {
  /// Positions up to here are exact as f32.
  static let maxPosition: Int64 = 1 << 24

  let isInterleaved: Bool
  /// Whether coordinates stay as they are.
  let hasRest: Bool
  /// The table of frequencies, which the pass copies.
  let frequencies: UnsafeRawBufferPointer

  init(
    rotaryDim: UInt32, headDim: UInt32, attentionScale: Float, pairing: UInt32, invFreq: UnsafeRawPointer?,
    invFreqCount: UInt64
  ) throws(StatusError) {
    try require(headDim % 2 == 0, StatusCode.invalidArgument, "\(arg: "headDim") is \(headDim); it is even")
    try require(
      rotaryDim % 2 == 0 && rotaryDim <= headDim, StatusCode.invalidArgument,
      "\(arg: "rotaryDim") is \(rotaryDim); it is even and at most \(arg: "headDim") \(headDim)")
    try require(
      attentionScale.isFinite && attentionScale > 0, StatusCode.invalidArgument,
      "\(arg: "attentionScale") is \(attentionScale); it is finite and above 0, usually 1")
    guard let known = Pairing(rawValue: pairing) else {
      throw StatusError(
        StatusCode.invalidArgument, "\(arg: "pairing") is \(pairing); it is 1 (half) or 2 (interleaved)")
    }
    let maxDim = UInt32(KernelBinding.maxBytes) / UInt32(MemoryLayout<Float>.size) * 2
    try require(
      rotaryDim > 0 && rotaryDim <= maxDim, StatusCode.unsupported,
      "\(arg: "rotaryDim") is \(rotaryDim); it is 2 to \(maxDim)")
    try require(
      invFreqCount == UInt64(rotaryDim / 2), StatusCode.invalidArgument,
      "\(arg: "invFreq") has \(invFreqCount) elements; \(arg: "rotaryDim") \(rotaryDim) has \(rotaryDim / 2) pairs")
    guard let invFreq else {
      throw StatusError(StatusCode.invalidArgument, "\(arg: "invFreq") is NULL")
    }
    isInterleaved = known == .interleaved
    hasRest = rotaryDim < headDim
    frequencies = UnsafeRawBufferPointer(start: invFreq, count: Int(rotaryDim / 2) * MemoryLayout<Float>.size)
  }
}
