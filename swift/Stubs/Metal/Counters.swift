import Foundation

public protocol MTLCounter: NSObjectProtocol {
  var name: String { get }
}

public protocol MTLCounterSet: NSObjectProtocol {
  var name: String { get }
  var counters: [any MTLCounter] { get }
}

public struct MTLCommonCounterSet: RawRepresentable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let timestamp = MTLCommonCounterSet(rawValue: "timestamp")
}

public enum MTLCounterSamplingPoint: UInt {
  case atStageBoundary = 0
  case atDrawBoundary = 1
  case atDispatchBoundary = 2
  case atTileDispatchBoundary = 3
  case atBlitBoundary = 4
}

open class MTLCounterSampleBufferDescriptor: NSObject {
  public override init() {}

  open var counterSet: (any MTLCounterSet)?
  open var label = ""
  open var storageMode = MTLStorageMode.shared
  open var sampleCount = 0
}

public protocol MTLCounterSampleBuffer: NSObjectProtocol {
  var label: String { get }
  var sampleCount: Int { get }
  func resolveCounterRange(_ range: Range<Int>) throws -> Data?
}

open class MTLComputePassDescriptor: NSObject {
  public override init() {}

  open var dispatchType = MTLDispatchType.serial
  open var sampleBufferAttachments: MTLComputePassSampleBufferAttachmentDescriptorArray {
    MTLComputePassSampleBufferAttachmentDescriptorArray()
  }
}

open class MTLComputePassSampleBufferAttachmentDescriptorArray: NSObject {
  public override init() {}

  open subscript(attachmentIndex: Int) -> MTLComputePassSampleBufferAttachmentDescriptor! {
    get { nil }
    set {}
  }
}

open class MTLComputePassSampleBufferAttachmentDescriptor: NSObject {
  public override init() {}

  open var sampleBuffer: (any MTLCounterSampleBuffer)?
  open var startOfEncoderSampleIndex = 0
  open var endOfEncoderSampleIndex = 0
}
