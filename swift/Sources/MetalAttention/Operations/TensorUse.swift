/// How a dispatch accesses a tensor, checked against the parameters.
struct TensorUse {
  let tensor: Tensor
  let isWrite: Bool
  /// Elements that the parameters describe, from the tensor's start.
  let elements: UInt64
  /// Those of them that the dispatch touches.
  let touched: HeadMajor.Slots

  /// Of a tensor all of whose `elements` are touched.
  static func whole(_ tensor: Tensor, isWrite: Bool, elements: UInt64) -> TensorUse {
    TensorUse(
      tensor: tensor, isWrite: isWrite, elements: elements, touched: HeadMajor.Slots(elements: 0..<elements))
  }

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
        try use.access.requireApart(use.tensor.name, from: other.access, other.tensor.name)
      }
    }
  }

  private var access: Access { tensor.access(0..<elements, isWrite: isWrite) }
}
