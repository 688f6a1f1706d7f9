/// What a kernel does with a resource that it reaches by an address.
public struct MTLResourceUsage: OptionSet, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var read: MTLResourceUsage { MTLResourceUsage(rawValue: 1) }
  public static var write: MTLResourceUsage { MTLResourceUsage(rawValue: 2) }
}
