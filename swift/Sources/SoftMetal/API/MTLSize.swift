/// A number of threads or threadgroups along three dimensions.
public struct MTLSize: Sendable {
  public var width: Int
  public var height: Int
  public var depth: Int

  public init() {
    self.init(width: 0, height: 0, depth: 0)
  }

  public init(width: Int, height: Int, depth: Int) {
    self.width = width
    self.height = height
    self.depth = depth
  }
}

public func MTLSizeMake(_ width: Int, _ height: Int, _ depth: Int) -> MTLSize {
  MTLSize(width: width, height: height, depth: depth)
}
