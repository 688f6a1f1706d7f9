/// A kernel of a library, its function constants fixed.
public protocol MTLFunction: AnyObject {
  var name: String { get }
}
