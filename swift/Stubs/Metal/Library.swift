import Foundation

open class MTLCompileOptions: NSObject {
  open var fastMathEnabled = true
  @available(macOS 15.0, *)
  open var mathMode: MTLMathMode {
    get { .fast }
    set {}
  }
  @available(macOS 15.0, *)
  open var mathFloatingPointFunctions: MTLMathFloatingPointFunctions {
    get { .fast }
    set {}
  }
  open var languageVersion: MTLLanguageVersion = .version3_1
  open var optimizationLevel: MTLLibraryOptimizationLevel = .default

  public override init() {}
}

public enum MTLMathMode: Int {
  case safe = 0
  case relaxed = 1
  case fast = 2
}

public enum MTLMathFloatingPointFunctions: Int {
  case fast = 0
  case precise = 1
}

public enum MTLLibraryOptimizationLevel: Int {
  case `default` = 0
  case size = 1
}

public enum MTLLanguageVersion: UInt {
  case version2_4 = 0x2_0004
  case version3_0 = 0x3_0000
  case version3_1 = 0x3_0001
}

public protocol MTLLibrary: NSObjectProtocol {
  var functionNames: [String] { get }
  func makeFunction(name functionName: String) -> (any MTLFunction)?
  func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction
}

public protocol MTLFunction: NSObjectProtocol {
  var name: String { get }
  var functionConstantsDictionary: [String: MTLFunctionConstant] { get }
}

open class MTLFunctionConstant: NSObject {
  open var name: String { "" }
  open var type: MTLDataType { .none }
  open var index: Int { 0 }
  open var required: Bool { false }
}

open class MTLFunctionConstantValues: NSObject {
  public override init() {}
  open func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, index: Int) {}
  open func setConstantValue(_ value: UnsafeRawPointer, type: MTLDataType, withName name: String) {}
}

public struct MTLLibraryError: Error {
  public enum Code: Int {
    case unsupported = 1
    case `internal` = 2
    case compileFailure = 3
    case compileWarning = 4
    case functionNotFound = 5
    case fileNotFound = 6
  }

  public var code: Code { .internal }
}

public protocol MTLComputePipelineState: NSObjectProtocol {
  var maxTotalThreadsPerThreadgroup: Int { get }
  var threadExecutionWidth: Int { get }
  var staticThreadgroupMemoryLength: Int { get }
}
