/// Compiled source: its kernels by name.
public protocol MTLLibrary: AnyObject {
  var functionNames: [String] { get }

  /// The function of that name, or nil when there is none or when it needs
  /// function constants.
  func makeFunction(name functionName: String) -> (any MTLFunction)?

  /// The function of that name under the given constants.
  ///
  /// - Throws: `MTLLibraryError` when there is no such function, or a constant
  ///   that it needs is missing or of another type.
  func makeFunction(
    name: String, constantValues: MTLFunctionConstantValues
  ) throws -> any MTLFunction
}
