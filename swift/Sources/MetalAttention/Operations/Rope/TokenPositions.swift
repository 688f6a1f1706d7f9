import CMetalAttention

/// Positions of tokens in device memory: i32, of all batches or of each.
struct TokenPositions {
  let use: TensorUse
  var read: Access { use.tensor.access(use.touched.elements, isWrite: false) }

  /// nil where there are none, and positions follow one another.
  init?(
    _ positions: MATensor, perBatch: UInt32, _ perBatchName: Argument = "positionsPerBatch", batch: UInt32,
    nTokens: UInt32, _ countName: Argument = "nTokens", in pass: Pass
  ) throws(StatusError) {
    guard Tensor.isPresent(positions) else {
      try require(
        perBatch == 0, StatusCode.invalidArgument,
        "\(perBatchName) is \(perBatch), but \(TensorName.positions) is absent; it is 0 then")
      return nil
    }
    let tensor = try Tensor(positions, .positions, in: pass)
    try tensor.requireDType(.i32)
    try require(
      perBatch <= 1, StatusCode.invalidArgument, "\(perBatchName) is \(perBatch); it is 0 or 1")
    let elements = Count(perBatch == 1 ? batch : 1) * nTokens
    try tensor.requireRoom(
      for: elements,
      perBatch == 1
        ? "\(arg: "batch") \(batch) x \(countName) \(nTokens)" : "\(countName) \(nTokens)")
    use = .whole(tensor, isWrite: false, elements: elements.value)
  }
}
