import CMetalAttention

extension Exports {
  static func sourceRegister(
    _ device: UInt32, _ name: UnsafePointer<CChar>?, _ source: UnsafePointer<CChar>?, _ length: UInt64,
    _ options: UnsafePointer<MASourceOptions>?
  ) throws(StatusError) {
    let registry = try HandleSpace.devices.open(device, "device").registry
    let (name, text) = try (read(name, "name"), read(source, length: length, "source"))
    let options = try options == nil ? SourceOptions() : SourceOptions(read(options, "options"))
    try registry.register(ShaderSource(name: name, text: text, options: options), replaces: options.replaces)
  }

  static func kernelNames(
    _ device: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    let names = try HandleSpace.devices.open(device, "device").registry.kernelNames
    try write(names.joined(separator: "\n"), to: buffer, capacity: capacity, needed: needed)
  }

  static func pipelineCreate(
    _ device: UInt32, _ kernel: UnsafePointer<CChar>?, _ constants: UnsafePointer<MAConstant>?, _ count: UInt32,
    _ pipeline: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    try createPipeline(device, kernel, constants, count, pipeline, isBuiltIn: false)
  }

  static func pipelineCreateBuiltIn(
    _ device: UInt32, _ kernel: UnsafePointer<CChar>?, _ constants: UnsafePointer<MAConstant>?, _ count: UInt32,
    _ pipeline: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    try createPipeline(device, kernel, constants, count, pipeline, isBuiltIn: true)
  }

  private static func createPipeline(
    _ device: UInt32, _ kernel: UnsafePointer<CChar>?, _ constants: UnsafePointer<MAConstant>?, _ count: UInt32,
    _ pipeline: UnsafeMutablePointer<UInt32>?, isBuiltIn: Bool
  ) throws(StatusError) {
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(pipeline, "pipeline")
    let kernel = try read(kernel, "kernel")
    let key = try PipelineKey(
      kernel: kernel, isBuiltIn: isBuiltIn, constants: FunctionConstant.list(at: constants, count: count))
    let handle = try device.adopt(device.registry.pipeline(key), in: HandleSpace.pipelines)
    store(handle, to: out)
  }

  static func pipelineInfo(_ pipeline: UInt32, _ info: UnsafeMutablePointer<MAPipelineInfo>?) throws(StatusError) {
    let pipeline = try HandleSpace.pipelines.open(pipeline, "pipeline")
    let out = try unwrap(info, "info")
    var info = MAPipelineInfo()
    info.maxTotalThreadsPerThreadgroup = pipeline.maxTotalThreadsPerThreadgroup
    info.threadExecutionWidth = UInt32(clamping: pipeline.state.threadExecutionWidth)
    info.staticThreadgroupMemoryLength = pipeline.staticThreadgroupMemoryLength
    store(info, to: out)
  }

  static func pipelineExecutor(
    _ pipeline: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ needed: UnsafeMutablePointer<UInt64>?
  ) throws(StatusError) {
    let pipeline = try HandleSpace.pipelines.open(pipeline, "pipeline")
    try write(executor(of: pipeline.state), to: buffer, capacity: capacity, needed: needed)
  }

  static func pipelineRelease(_ pipeline: UInt32) throws(StatusError) {
    _ = try HandleSpace.pipelines.close(pipeline, "pipeline")
  }
}
