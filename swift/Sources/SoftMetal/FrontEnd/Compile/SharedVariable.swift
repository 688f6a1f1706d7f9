/// A variable of LLVM's code that belongs into shared memory.
struct SharedVariable {
  /// With the sign that begins it.
  let name: [UInt8]
  let declaration: [UInt8]

  /// Nil for another variable. What lies in shared memory has no value at first, and each kernel has its own.
  init?(_ line: ArraySlice<UInt8>) {
    let text = String(decoding: line, as: UTF8.self)
    guard let equals = text.firstRange(of: " = ") else { return nil }
    let name = String(text[..<equals.lowerBound])
    self.name = Array(name.utf8)
    if self.name == NvptxCode.argumentMemory {
      declaration = Array("\(name) = external addrspace(3) global [0 x i8], align 16".utf8)
      return
    }
    guard let section = text.firstRange(of: ", section \"sm_shared\""),
      let start = text.firstRange(of: "addrspace(1) ")?.upperBound, start < section.lowerBound,
      text.contains(", align ")
    else { return nil }
    // `constant TYPE VALUE`, or `global`.
    let words = text[start..<section.lowerBound]
    guard let space = words.firstIndex(of: " "), let value = words.lastIndex(of: " "), space < value else { return nil }
    let type = words[words.index(after: space)..<value]
    // As much as any access wants, so that neighbours are accessed as one.
    declaration = Array("\(name) = internal addrspace(3) global \(type) undef, align 16".utf8)
  }
}
