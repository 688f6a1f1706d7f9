import CMetalAttention

extension LayoutTable {
  /// The structs of `metal_attention.h` that belong to no operation.
  static let abiStructs: [StructLayout] = [
    StructLayout(
      MATensor.self,
      [
        LayoutField("buffer", \MATensor.buffer, .u32),
        LayoutField("dtype", \MATensor.dtype, .u32),
        LayoutField("offset", \MATensor.offset, .u64),
        LayoutField("length", \MATensor.length, .u64),
      ]),
    StructLayout(
      MADeviceInfo.self,
      [
        LayoutField("name", \MADeviceInfo.name, .char, count: 64),
        LayoutField("backend", \MADeviceInfo.backend, .char, count: 32),
        LayoutField("registryID", \MADeviceInfo.registryID, .u64),
        LayoutField("maxBufferLength", \MADeviceInfo.maxBufferLength, .u64),
        LayoutField("recommendedMaxWorkingSetSize", \MADeviceInfo.recommendedMaxWorkingSetSize, .u64),
        LayoutField("currentAllocatedSize", \MADeviceInfo.currentAllocatedSize, .u64),
        LayoutField("maxThreadgroupMemoryLength", \MADeviceInfo.maxThreadgroupMemoryLength, .u32),
        LayoutField("maxThreadsPerThreadgroup", \MADeviceInfo.maxThreadsPerThreadgroup, .u32, count: 3),
        LayoutField("hasUnifiedMemory", \MADeviceInfo.hasUnifiedMemory, .u32),
        LayoutField("reserved", \MADeviceInfo.reserved, .u32, count: 11),
      ]),
    StructLayout(
      MAPassInfo.self,
      [
        LayoutField("state", \MAPassInfo.state, .u32),
        LayoutField("dispatches", \MAPassInfo.dispatches, .u32),
        LayoutField("gpuStartTime", \MAPassInfo.gpuStartTime, .f64),
        LayoutField("gpuEndTime", \MAPassInfo.gpuEndTime, .f64),
      ]),
    StructLayout(
      MAConstant.self,
      [
        LayoutField("index", \MAConstant.index, .u32),
        LayoutField("dtype", \MAConstant.dtype, .u32),
        LayoutField("components", \MAConstant.components, .u32),
        LayoutField("reserved", \MAConstant.reserved, .u32),
        LayoutField("value", \MAConstant.value, .u8, count: 32),
      ]),
    StructLayout(
      MAPipelineInfo.self,
      [
        LayoutField("maxTotalThreadsPerThreadgroup", \MAPipelineInfo.maxTotalThreadsPerThreadgroup, .u32),
        LayoutField("threadExecutionWidth", \MAPipelineInfo.threadExecutionWidth, .u32),
        LayoutField("staticThreadgroupMemoryLength", \MAPipelineInfo.staticThreadgroupMemoryLength, .u32),
        LayoutField("reserved", \MAPipelineInfo.reserved, .u32),
      ]),
    StructLayout(
      MABinding.self,
      [
        LayoutField("index", \MABinding.index, .u32),
        LayoutField("kind", \MABinding.kind, .u32),
        LayoutField("buffer", \MABinding.buffer, .u32),
        LayoutField("access", \MABinding.access, .u32),
        LayoutField("offset", \MABinding.offset, .u64),
        LayoutField("length", \MABinding.length, .u64),
        LayoutField("bytes", \MABinding.bytes, .pointer),
      ]),
    StructLayout(
      MAKernelDispatch.self,
      [
        LayoutField("pipeline", \MAKernelDispatch.pipeline, .u32),
        LayoutField("form", \MAKernelDispatch.form, .u32),
        LayoutField("grid", \MAKernelDispatch.grid, .u32, count: 3),
        LayoutField("threadsPerThreadgroup", \MAKernelDispatch.threadsPerThreadgroup, .u32, count: 3),
        LayoutField("bindingCount", \MAKernelDispatch.bindingCount, .u32),
        LayoutField("reserved", \MAKernelDispatch.reserved, .u32),
        LayoutField("bindings", \MAKernelDispatch.bindings, .pointer),
      ]),
  ]
}
