/// A list that is made once and kept as long as the process: reading it counts no references, as reading an array does.
struct ConstantList<Element: BitwiseCopyable & Equatable>: @unchecked Sendable {
  private let elements: UnsafeBufferPointer<Element>

  init(_ given: [Element]) {
    let memory = UnsafeMutableBufferPointer<Element>.allocate(capacity: given.count)
    _ = memory.initialize(from: given)
    elements = UnsafeBufferPointer(memory)
  }

  @inline(__always)
  subscript(_ index: Int) -> Element {
    precondition(elements.indices.contains(index))
    return elements[index]
  }

  @inline(__always)
  func firstIndex(of element: Element) -> Int? { elements.firstIndex(of: element) }
}
