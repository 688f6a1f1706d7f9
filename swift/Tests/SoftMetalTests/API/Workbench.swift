import Testing

@testable import SoftMetal

/// A device with the test shader, and short ways to use it.
struct Workbench {
  let device: any MTLDevice
  let queue: any MTLCommandQueue
  let library: any MTLLibrary

  init(_ settings: DeviceSettings = DeviceSettings(threads: 2)) throws {
    device = try SoftDevice(settings: settings)
    queue = try #require(device.makeCommandQueue())
    let options = MTLCompileOptions()
    options.fastMathEnabled = false
    library = try device.makeLibrary(source: testShader, options: options)
  }

  func pipeline(
    _ name: String, _ constants: MTLFunctionConstantValues = MTLFunctionConstantValues()
  ) throws -> any MTLComputePipelineState {
    try device.makeComputePipelineState(function: library.makeFunction(name: name, constantValues: constants))
  }

  func buffer(_ values: [UInt32]) throws -> any MTLBuffer {
    try #require(
      values.withUnsafeBytes { bytes in
        bytes.baseAddress.flatMap { device.makeBuffer(bytes: $0, length: bytes.count) }
      })
  }

  func commandBuffer() throws -> any MTLCommandBuffer {
    try #require(queue.makeCommandBuffer())
  }

  /// Encodes with one encoder, commits, waits.
  func run(
    _ dispatchType: MTLDispatchType = .serial, encode: (any MTLComputeCommandEncoder) throws -> Void
  ) throws -> any MTLCommandBuffer {
    let commands = try commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder(dispatchType: dispatchType))
    try encode(encoder)
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    return commands
  }

  /// Runs what must work.
  func runCleanly(
    _ dispatchType: MTLDispatchType = .serial, encode: (any MTLComputeCommandEncoder) throws -> Void
  ) throws {
    let commands = try run(dispatchType, encode: encode)
    try #require(commands.status == .completed, "\(commands.error.map { "\($0)" } ?? "no error")")
  }
}

extension MTLBuffer {
  var values: [UInt32] {
    Array(UnsafeRawBufferPointer(start: contents(), count: length).bindMemory(to: UInt32.self))
  }
}

extension MTLSize {
  static func line(_ width: Int) -> MTLSize { MTLSizeMake(width, 1, 1) }
}

extension MTLComputeCommandEncoder {
  func setValue(_ value: UInt32, index: Int) {
    withUnsafeBytes(of: value) { bytes in
      guard let address = bytes.baseAddress else { return }
      setBytes(address, length: bytes.count, index: index)
    }
  }
}
