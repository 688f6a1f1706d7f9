/// How a resource is stored.
public struct MTLResourceOptions: OptionSet, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The default on Apple silicon, and empty.
  public static var storageModeShared: MTLResourceOptions { MTLResourceOptions(rawValue: 0 << 4) }
  public static var storageModePrivate: MTLResourceOptions { MTLResourceOptions(rawValue: 2 << 4) }

  /// The caller orders all access by barriers.
  public static var hazardTrackingModeUntracked: MTLResourceOptions {
    MTLResourceOptions(rawValue: 1 << 8)
  }
}
