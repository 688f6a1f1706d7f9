import Foundation

public protocol MTLAllocation: NSObjectProtocol {
  var allocatedSize: Int { get }
}

public protocol MTLResource: MTLAllocation {
  var label: String? { get set }
  var storageMode: MTLStorageMode { get }
}

public protocol MTLBuffer: MTLResource {
  var length: Int { get }
  func contents() -> UnsafeMutableRawPointer
  var gpuAddress: UInt64 { get }
}

public struct MTLResourceUsage: OptionSet {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var read: MTLResourceUsage { MTLResourceUsage(rawValue: 1) }
  public static var write: MTLResourceUsage { MTLResourceUsage(rawValue: 2) }
}

public struct MTLResourceOptions: OptionSet {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var storageModeShared: MTLResourceOptions { [] }
  public static var storageModePrivate: MTLResourceOptions { MTLResourceOptions(rawValue: 32) }
  public static var hazardTrackingModeUntracked: MTLResourceOptions { MTLResourceOptions(rawValue: 256) }
}

public enum MTLStorageMode: UInt {
  case shared = 0
  case managed = 1
  case `private` = 2
  case memoryless = 3
}
