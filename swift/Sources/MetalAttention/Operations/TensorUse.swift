/// What a dispatch does with a tensor that the parameters have been checked against.
struct TensorUse {
  let tensor: Tensor
  let isWrite: Bool
  /// Elements that the parameters describe, from the tensor's start.
  let elements: UInt64
  /// Those of them that the dispatch touches.
  let touched: HeadMajor.Slots

  func bind(in pass: Pass, at index: Int) {
    pass.bind(tensor.buffer, offset: tensor.offset, at: index)
  }

  func note(in pass: Pass) {
    pass.note(tensor.access(touched.elements, isWrite: isWrite))
    if !touched.wrapped.isEmpty { pass.note(tensor.access(touched.wrapped, isWrite: isWrite)) }
  }

  /// Checks that no tensor that is written shares a byte with another one.
  static func requireApart(_ uses: [TensorUse]) throws(StatusError) {
    for (index, use) in uses.enumerated() {
      for other in uses[(index + 1)...] where use.isWrite || other.isWrite {
        try use.whole.requireApart(use.tensor.name, from: other.whole, other.tensor.name)
      }
    }
  }

  private var whole: Access { tensor.access(0..<elements, isWrite: isWrite) }
}
