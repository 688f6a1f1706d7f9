import CMetalAttention

/// Head vectors and where they go once turned, those of q or of k: checked, as
/// far as the shapes of `RopeExtent` reach.
struct RopeStream {
  let input: Tensor
  let output: Tensor
  let read: Access
  let written: Access

  init(
    _ input: MATensor, _ inputName: TensorName, to output: MATensor, _ outputName: TensorName, _ extent: RopeExtent,
    in pass: Pass
  ) throws(StatusError) {
    self.input = try Tensor(input, inputName, in: pass)
    self.output = try Tensor(output, outputName, in: pass)
    let elements = extent.elements
    try self.input.requireRoom(for: elements, extent.formula)
    try self.output.requireRoom(for: elements, extent.formula)
    read = self.input.access(0..<elements.value, isWrite: false)
    written = self.output.access(0..<elements.value, isWrite: true)
  }

  func bind(at inputIndex: Int, _ outputIndex: Int, in encoder: DispatchEncoder) {
    encoder.bind(input.buffer, offset: input.offset, at: inputIndex)
    encoder.bind(output.buffer, offset: output.offset, at: outputIndex)
    encoder.note(read)
    encoder.note(written)
  }

  /// Checks that the output is the input, element by element, or shares no byte with it.
  func requireInPlaceOrApart() throws(StatusError) {
    if read.buffer == written.buffer && read.start == written.start && read.end == written.end { return }
    try written.requireApart(output.name, from: read, input.name)
  }
}

/// The shape of one side of a stream, in elements.
struct RopeExtent {
  let batch: UInt32
  let nTokens: UInt32
  let heads: UInt32
  let headsName: Argument
  let headDim: UInt32

  var elements: Count { Count(batch) * nTokens * heads * headDim }

  /// For messages.
  var formula: Sentence {
    "\(arg: "batch") \(batch) x \(arg: "nTokens") \(nTokens) x \(headsName) \(heads) x \(arg: "headDim") \(headDim)"
  }
}
