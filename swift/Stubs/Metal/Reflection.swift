import Foundation
import ObjectiveC

public struct MTLPipelineOption: OptionSet {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var bindingInfo: MTLPipelineOption { MTLPipelineOption(rawValue: 1) }
}

public typealias MTLAutoreleasedComputePipelineReflection = MTLComputePipelineReflection

open class MTLComputePipelineReflection: NSObject {
  @available(macOS 13.0, *)
  open var bindings: [any MTLBinding] { [] }
}

@available(macOS 13.0, *)
public protocol MTLBinding: NSObjectProtocol {
  var name: String { get }
  var type: MTLBindingType { get }
  var access: MTLBindingAccess { get }
  var index: Int { get }
  var isUsed: Bool { get }
  var isArgument: Bool { get }
}

@available(macOS 13.0, *)
public protocol MTLBufferBinding: MTLBinding {
  var bufferAlignment: Int { get }
  var bufferDataSize: Int { get }
}

@available(macOS 13.0, *)
public protocol MTLThreadgroupBinding: MTLBinding {
  var threadgroupMemoryAlignment: Int { get }
  var threadgroupMemoryDataSize: Int { get }
}

@available(macOS 11.0, *)
public enum MTLBindingType: Int {
  case buffer = 0
  case threadgroupMemory = 1
  case texture = 2
  case sampler = 3
}

public enum MTLBindingAccess: UInt {
  case readOnly = 0
  case readWrite = 1
  case writeOnly = 2
}
