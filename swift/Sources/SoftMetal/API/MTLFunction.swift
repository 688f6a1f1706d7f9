/// A kernel of a library, its function constants fixed where values were given.
public protocol MTLFunction: AnyObject {
  var name: String { get }
  /// Those of the shader that the kernel needs, by their names.
  var functionConstantsDictionary: [String: MTLFunctionConstant] { get }
}
