import CMetalAttention

/// The pages of each sequence that a write goes to, i32 [batch, pages].
enum BlockTable {
  static func use(
    _ table: MATensor, batch: UInt32, pages: UInt32, in pass: Pass
  ) throws(StatusError) -> TensorUse {
    let tensor = try Tensor(table, .blockTable, in: pass)
    try tensor.requireDType(.i32)
    let elements = Count(batch) * pages
    try tensor.requireRoom(for: elements, "\(arg: "batch") \(batch) x \(pages) pages")
    return TensorUse(
      tensor: tensor, isWrite: false, elements: elements.value, touched: HeadMajor.Slots(elements: 0..<elements.value))
  }
}
