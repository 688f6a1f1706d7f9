/// Values for a shader's `[[function_constant(index)]]` declarations.
///
///     let values = MTLFunctionConstantValues()
///     var causal = true
///     values.setConstantValue(&causal, type: .bool, index: 301)
open class MTLFunctionConstantValues {
  private(set) var values: [UInt32: ConstantValue] = [:]
  private(set) var namedValues: [String: ConstantValue] = [:]

  /// An index no function constant can have.
  private(set) var invalidIndex: Int?

  public init() {}

  /// Copies a value of the given type; a second value for an index replaces
  /// the first.
  open func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, index: Int) {
    guard let key = UInt32(exactly: index) else {
      invalidIndex = index
      return
    }
    values[key] = Self.copy(value, type)
  }

  /// The same for a constant by its name in the shader; it wins over one by index.
  open func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, withName name: String) {
    namedValues[name] = Self.copy(value, type)
  }

  private static func copy(_ value: UnsafeRawPointer, _ type: MTLDataType) -> ConstantValue {
    ConstantValue(typeName: type.shaderName, bytes: Array(UnsafeRawBufferPointer(start: value, count: type.size)))
  }
}
