/// A value that the device counts.
public protocol MTLCounter: AnyObject {
  var name: String { get }
}

/// Counters that are sampled together.
public protocol MTLCounterSet: AnyObject {
  var name: String { get }
  var counters: [any MTLCounter] { get }
}

/// The names of counter sets that devices have in common.
public struct MTLCommonCounterSet: RawRepresentable {
  public let rawValue: String

  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  public static let timestamp = MTLCommonCounterSet(rawValue: "timestamp")
}

/// Where counters may be sampled.
public enum MTLCounterSamplingPoint: UInt {
  case atStageBoundary = 0
  case atDrawBoundary = 1
  case atDispatchBoundary = 2
  case atTileDispatchBoundary = 3
  case atBlitBoundary = 4
}

/// What a sample buffer is made from.
open class MTLCounterSampleBufferDescriptor {
  public init() {}

  open var counterSet: (any MTLCounterSet)?
  open var label = ""
  open var storageMode = MTLStorageMode.shared
  open var sampleCount = 0
}

/// Samples of a counter set, written while command buffers run.
public protocol MTLCounterSampleBuffer: AnyObject {
  var label: String { get }
  var sampleCount: Int { get }

  /// The samples as the structs of their counter set: of timestamps, 64 bits each.
  func resolveCounterRange(_ range: Range<Int>) throws -> Data?
}

/// Foundation's, as far as it is needed here.
public struct Data {
  private let bytes: [UInt8]

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = Array(bytes)
  }

  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
  }
}
