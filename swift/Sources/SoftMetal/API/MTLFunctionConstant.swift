/// What a shader declares with `[[function_constant(index)]]`.
open class MTLFunctionConstant {
  open var name: String { constantName }
  /// `none` for a type of the shader's own.
  open var type: MTLDataType { constantType }
  open var index: Int { constantIndex }
  /// Whether a pipeline can be made only with a value.
  open var required: Bool { true }

  private let constantName: String
  private let constantType: MTLDataType
  private let constantIndex: Int

  init(name: String, type: MTLDataType, index: Int) {
    constantName = name
    constantType = type
    constantIndex = index
  }
}
