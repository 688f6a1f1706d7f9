import Foundation

public protocol MTLCommandQueue: NSObjectProtocol {
  var label: String? { get set }
  func makeCommandBuffer() -> (any MTLCommandBuffer)?
  func makeCommandBufferWithUnretainedReferences() -> (any MTLCommandBuffer)?
}

public protocol MTLCommandBuffer: NSObjectProtocol {
  var label: String? { get set }
  var status: MTLCommandBufferStatus { get }
  var error: (any Error)? { get }
  var gpuStartTime: CFTimeInterval { get }
  var gpuEndTime: CFTimeInterval { get }
  func makeComputeCommandEncoder() -> (any MTLComputeCommandEncoder)?
  func makeComputeCommandEncoder(dispatchType: MTLDispatchType) -> (any MTLComputeCommandEncoder)?
  func makeComputeCommandEncoder(
    descriptor computePassDescriptor: MTLComputePassDescriptor
  ) -> (any MTLComputeCommandEncoder)?
  func addCompletedHandler(_ block: @escaping MTLCommandBufferHandler)
  func commit()
  func waitUntilCompleted()
}

public typealias MTLCommandBufferHandler = (any MTLCommandBuffer) -> Void

public enum MTLCommandBufferStatus: UInt {
  case notEnqueued = 0
  case enqueued = 1
  case committed = 2
  case scheduled = 3
  case completed = 4
  case error = 5
}

public enum MTLDispatchType: UInt {
  case serial = 0
  case concurrent = 1
}

public struct MTLCommandBufferError: Error {
  public enum Code: UInt {
    case none = 0
    case `internal` = 1
    case timeout = 2
    case pageFault = 3
    case accessRevoked = 4
    case notPermitted = 7
    case outOfMemory = 8
    case invalidResource = 9
    case memoryless = 10
    case deviceRemoved = 11
    case stackOverflow = 12
  }

  public var code: Code { .none }
}

public protocol MTLCommandEncoder: NSObjectProtocol {
  var label: String? { get set }
  func endEncoding()
}

public protocol MTLComputeCommandEncoder: MTLCommandEncoder {
  func setComputePipelineState(_ state: any MTLComputePipelineState)
  func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
  func setBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
  func useResource(_ resource: any MTLResource, usage: MTLResourceUsage)
  func setThreadgroupMemoryLength(_ length: Int, index: Int)
  func dispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
  func dispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
  func memoryBarrier(scope: MTLBarrierScope)
  func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
}

public struct MTLBarrierScope: OptionSet {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var buffers: MTLBarrierScope { MTLBarrierScope(rawValue: 1) }
}
