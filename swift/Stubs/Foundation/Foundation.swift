@_exported import ObjectiveC

public typealias CFTimeInterval = Double

public struct Data {
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: nil, count: 0))
  }
}
