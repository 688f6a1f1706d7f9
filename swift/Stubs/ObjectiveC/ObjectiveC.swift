/// What every Objective-C object can do.
public protocol NSObjectProtocol: AnyObject {}

/// The root of Objective-C classes.
open class NSObject: NSObjectProtocol {
  public init() {}
}

public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result {
  try body()
}

/// Swift's own where there is Objective-C.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>
