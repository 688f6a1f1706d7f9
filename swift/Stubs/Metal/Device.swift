import Foundation

public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? { nil }
public func MTLCopyAllDevices() -> [any MTLDevice] { [] }

public protocol MTLDevice: NSObjectProtocol {
  var name: String { get }
  var registryID: UInt64 { get }
  var hasUnifiedMemory: Bool { get }
  var maxThreadsPerThreadgroup: MTLSize { get }
  var maxThreadgroupMemoryLength: Int { get }
  var maxBufferLength: Int { get }
  var recommendedMaxWorkingSetSize: UInt64 { get }
  var currentAllocatedSize: Int { get }
  func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool
  var counterSets: [any MTLCounterSet]? { get }
  func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool
  func makeCounterSampleBuffer(descriptor: MTLCounterSampleBufferDescriptor) throws -> any MTLCounterSampleBuffer
  func makeCommandQueue() -> (any MTLCommandQueue)?
  func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?
  func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?
  func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions,
    deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
  ) -> (any MTLBuffer)?
  func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary
  func makeComputePipelineState(function computeFunction: any MTLFunction) throws -> any MTLComputePipelineState
  func makeComputePipelineState(
    function computeFunction: any MTLFunction, options: MTLPipelineOption,
    reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
  ) throws -> any MTLComputePipelineState
}

// The importer gives the parameters of Objective-C methods default arguments
// (`options` is `[]`, `deallocator` nil), which a protocol in Swift cannot
// state: a form for each way to leave them out.
extension MTLDevice {
  public func makeBuffer(length: Int) -> (any MTLBuffer)? { nil }
  public func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int) -> (any MTLBuffer)? { nil }
  public func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions = []
  ) -> (any MTLBuffer)? { nil }
  public func makeBuffer(
    bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
  ) -> (any MTLBuffer)? { nil }
}

public enum MTLGPUFamily: Int {
  case apple7 = 1007
  case apple8 = 1008
  case apple9 = 1009
  case metal3 = 5001
}

public struct MTLSize {
  public var width: Int
  public var height: Int
  public var depth: Int

  public init() { self.init(width: 0, height: 0, depth: 0) }

  public init(width: Int, height: Int, depth: Int) {
    self.width = width
    self.height = height
    self.depth = depth
  }
}

public func MTLSizeMake(_ width: Int, _ height: Int, _ depth: Int) -> MTLSize {
  MTLSize(width: width, height: height, depth: depth)
}
