/// Values for a shader's `[[function_constant(index)]]` declarations.
///
///     let values = MTLFunctionConstantValues()
///     var causal = true
///     values.setConstantValue(&causal, type: .bool, index: 301)
open class MTLFunctionConstantValues {
  /// In the order of their index.
  private(set) var values: [FunctionConstantValue] = []

  public init() {}

  /// Copies a value of the given type; a second value for an index replaces
  /// the first.
  open func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, index: Int) {
    let bytes = UnsafeRawBufferPointer(start: value, count: type.size)
    let constant = FunctionConstantValue(index: index, type: type, bytes: Array(bytes))
    let position = values.firstIndex { $0.index >= index } ?? values.endIndex
    if position < values.endIndex, values[position].index == index {
      values[position] = constant
    } else {
      values.insert(constant, at: position)
    }
  }
}
