/// The resources that a memory barrier orders.
public struct MTLBarrierScope: OptionSet, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  public static var buffers: MTLBarrierScope { MTLBarrierScope(rawValue: 1) }
}
