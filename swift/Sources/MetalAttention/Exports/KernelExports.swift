import CMetalAttention

#if compiler(>=6.3)
  @c(ma_source_register)
#else
  @_cdecl("ma_source_register")
#endif
public func sourceRegister(
  device: UInt32, name: UnsafePointer<CChar>?, source: UnsafePointer<CChar>?, length: UInt64
) -> Int32 {
  status("ma_source_register") { () throws(StatusError) in
    let device = try HandleSpace.devices.open(device, "device")
    let name = try read(name, "name")
    let source = try read(source, length: length, "source")
    try device.registry.register(name: name, text: source)
  }
}

#if compiler(>=6.3)
  @c(ma_kernel_names)
#else
  @_cdecl("ma_kernel_names")
#endif
public func kernelNames(
  device: UInt32, buffer: UnsafeMutablePointer<CChar>?, capacity: UInt64, needed: UnsafeMutablePointer<UInt64>?
) -> Int32 {
  status("ma_kernel_names") { () throws(StatusError) in
    let names = try HandleSpace.devices.open(device, "device").registry.kernelNames
    try write(names.joined(separator: "\n"), to: buffer, capacity: capacity, needed: needed)
  }
}

#if compiler(>=6.3)
  @c(ma_pipeline_create)
#else
  @_cdecl("ma_pipeline_create")
#endif
public func pipelineCreate(
  device: UInt32, kernel: UnsafePointer<CChar>?, constants: UnsafePointer<MAConstant>?, count: UInt32,
  pipeline: UnsafeMutablePointer<UInt32>?
) -> Int32 {
  status("ma_pipeline_create") { () throws(StatusError) in
    let device = try HandleSpace.devices.open(device, "device")
    let out = try unwrap(pipeline, "pipeline")
    let kernel = try read(kernel, "kernel")
    let key = try PipelineKey(kernel: kernel, constants: FunctionConstant.list(at: constants, count: count))
    let handle = try device.adopt(device.registry.pipeline(key), in: HandleSpace.pipelines)
    store(handle, to: out)
  }
}

#if compiler(>=6.3)
  @c(ma_pipeline_info)
#else
  @_cdecl("ma_pipeline_info")
#endif
public func pipelineInfo(pipeline: UInt32, info: UnsafeMutablePointer<MAPipelineInfo>?) -> Int32 {
  status("ma_pipeline_info") { () throws(StatusError) in
    let pipeline = try HandleSpace.pipelines.open(pipeline, "pipeline")
    let out = try unwrap(info, "info")
    var info = MAPipelineInfo()
    info.maxTotalThreadsPerThreadgroup = pipeline.maxTotalThreadsPerThreadgroup
    info.threadExecutionWidth = UInt32(clamping: pipeline.state.threadExecutionWidth)
    info.staticThreadgroupMemoryLength = pipeline.staticThreadgroupMemoryLength
    store(info, to: out)
  }
}

#if compiler(>=6.3)
  @c(ma_pipeline_release)
#else
  @_cdecl("ma_pipeline_release")
#endif
public func pipelineRelease(pipeline: UInt32) -> Int32 {
  status("ma_pipeline_release") { () throws(StatusError) in
    _ = try HandleSpace.pipelines.close(pipeline, "pipeline")
  }
}
