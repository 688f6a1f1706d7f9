/// How a dispatch accesses a tensor, checked against the parameters.
struct TensorUse {
  let tensor: Tensor
  let isWrite: Bool
  /// Elements that the parameters describe, from the tensor's start.
  let elements: UInt64
  /// Those of them that the dispatch touches.
  let touched: HeadMajor.Slots

  func bind(in encoder: DispatchEncoder, at index: Int) {
    encoder.bind(tensor.buffer, offset: tensor.offset, at: index)
  }

  func note(in encoder: DispatchEncoder) {
    encoder.note(tensor.access(touched.elements, isWrite: isWrite))
    if !touched.wrapped.isEmpty { encoder.note(tensor.access(touched.wrapped, isWrite: isWrite)) }
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
