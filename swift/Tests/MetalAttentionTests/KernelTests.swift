import CMetalAttention
import Testing

@testable import MetalAttention

@Suite struct KernelTests {
  let device = TestDevice()

  private static let scale = """
    #include <metal_stdlib>
    using namespace metal;
    constant uint factor [[function_constant(7)]];
    kernel void scale(device const uint *a [[buffer(0)]], device uint *b [[buffer(1)]],
                      constant uint &offset [[buffer(2)]], uint i [[thread_position_in_grid]]) {
      b[i] = a[i] * factor + offset;
    }
    kernel void through_memory(device uint *a [[buffer(0)]], threadgroup uint *part [[threadgroup(2)]],
                               uint i [[thread_index_in_threadgroup]]) {
      part[i] = a[i];
      a[i] = part[i];
    }
    """

  private func constant(_ index: UInt32, _ dtype: Int, _ bytes: [UInt8], components: UInt32 = 1) -> MAConstant {
    var constant = MAConstant()
    constant.index = index
    constant.dtype = UInt32(dtype)
    constant.components = components
    withUnsafeMutableBytes(of: &constant.value) { $0.copyBytes(from: bytes) }
    return constant
  }

  /// A dispatch of `scale` over 4 elements with its three bindings.
  private func dispatch(
    _ pass: ma_pass, _ pipeline: ma_pipeline, _ a: TestBuffer, _ b: TestBuffer, offset: UInt32 = 1,
    change: (inout MAKernelDispatch, inout [MABinding]) -> Void = { _, _ in }
  ) -> Int32 {
    withUnsafeBytes(of: offset) { offset in
      var bindings = [MABinding(), MABinding(), MABinding()]
      (bindings[0].buffer, bindings[0].access, bindings[0].length) = (a.handle, UInt32(MA_ACCESS_READ), a.length)
      (bindings[1].index, bindings[1].buffer, bindings[1].access, bindings[1].length) = (
        1, b.handle, UInt32(MA_ACCESS_WRITE), b.length
      )
      (bindings[2].index, bindings[2].kind, bindings[2].length, bindings[2].bytes) = (
        2, UInt32(MA_BINDING_BYTES), 4, offset.baseAddress
      )
      var dispatch = MAKernelDispatch()
      dispatch.pipeline = pipeline
      dispatch.form = UInt32(MA_DISPATCH_THREADS)
      dispatch.grid = (4, 1, 1)
      dispatch.threadsPerThreadgroup = (2, 1, 1)
      dispatch.bindingCount = 3
      change(&dispatch, &bindings)
      return bindings.withUnsafeBufferPointer { bindings in
        dispatch.bindings = bindings.baseAddress
        return ma_encode_kernel(pass, &dispatch)
      }
    }
  }

  @Test(arguments: BuiltInKernel.all.indices)
  func everyBuiltInKernelCompiles(index: Int) {
    let kernel = BuiltInKernel.all[index]
    let constants = kernel.constants.map { known in
      known.bits == 1 ? constant(known.index, MA_DTYPE_BOOL, [0]) : constant(known.index, MA_DTYPE_U32, [1, 0, 0, 0])
    }
    let pipeline = device.pipeline(kernel.name, constants)
    var info = MAPipelineInfo()
    expectOK(ma_pipeline_info(pipeline, &info))
    #expect(info.threadExecutionWidth == 32)
    // Attention of prompts declares the threads that run, that of tokens as many as leave each its registers.
    let isAttention =
      kernel.name.hasPrefix("flash_attn_prefill") && !kernel.name.hasPrefix("flash_attn_prefill_decode")
    let isOfTokens = kernel.name.hasPrefix("flash_attn_vec") && !kernel.name.contains("_reduce")
    let names = { (parts: [String]) in parts.contains { kernel.name.contains($0) } }
    let isLarge =
      names(["_matrices_d128"]) && !names(["_tq_"])
      || names(["_matrices_d64"]) && !names(["_tq_", "_hb_", "_hybrid_k_"])
    let ofTokens: UInt32 = isLarge ? 384 : 512
    // The joining of blocks has a lane for each coordinate.
    let joined = kernel.name.hasPrefix("flash_attn_vec_reduce_d") ? UInt32(kernel.name.split(separator: "_d")[1]) : nil
    let threads = joined.map { ($0 + 31) / 32 * 32 } ?? (isOfTokens ? ofTokens : isAttention ? 128 : 1024)
    #expect(info.maxTotalThreadsPerThreadgroup == threads)
    #expect(info.staticThreadgroupMemoryLength <= 32768)
    expectOK(ma_pipeline_release(pipeline))
    expectRefused(ma_pipeline_info(pipeline, &info), MA_ERROR_INVALID_HANDLE, "pipeline")
  }

  @Test func aCallersKernelRuns() {
    expectOK(device.register(Self.scale))
    #expect(text { ma_kernel_names(device.handle, $0, $1, $2) }.split(separator: "\n").contains("scale"))
    let pipeline = device.pipeline("scale", [constant(7, MA_DTYPE_U32, [3])])
    let (a, b, c) = (device.buffer([1, 2, 3, 4] as [UInt32]), device.buffer(16), device.buffer(16))
    let pass = device.pass()
    expectOK(dispatch(pass, pipeline, a, b))
    expectOK(dispatch(pass, pipeline, b, c, offset: 100))
    let description = text { ma_pass_describe(pass, $0, $1, $2) }
    #expect(
      description.contains(
        "\"op\":\"kernel\",\"kernel\":\"scale\",\"executor\":\"loop\",\"form\":\"threads\",\"grid\":[4,1,1]"))
    #expect(description.hasSuffix("\"barrierBefore\":true}]"))
    run(pass)
    #expect(b.array(UInt32.self) == [4, 7, 10, 13])
    #expect(c.array(UInt32.self) == [112, 121, 130, 139])
  }

  @Test func constantsMakePipelinesOfTheirOwn() {
    expectOK(device.register(Self.scale))
    let (a, b) = (device.buffer([1, 1, 1, 1] as [UInt32]), device.buffer(16))
    for factor in [2, 9, 2] as [UInt8] {
      let pass = device.pass()
      expectOK(dispatch(pass, device.pipeline("scale", [constant(7, MA_DTYPE_U32, [factor])]), a, b, offset: 0))
      run(pass)
      #expect(b.array(UInt32.self) == [UInt32](repeating: UInt32(factor), count: 4))
    }
  }

  @Test func sourcesAndConstantsThatCannotWorkAreRefused() {
    var pipeline: ma_pipeline = 77
    func create(_ kernel: String, _ constants: [MAConstant] = []) -> Int32 {
      ma_pipeline_create(device.handle, kernel, constants, UInt32(constants.count), &pipeline)
    }
    expectOK(device.register(Self.scale))
    expectRefused(
      device.register(Self.scale, name: "again.metal"), MA_ERROR_INVALID_ARGUMENT, "again.metal", "scale", "test.metal")
    expectRefused(create("nothing"), MA_ERROR_KERNEL_NOT_FOUND, "nothing", "kv_cache_copy_f32", "scale")
    expectOK(device.register("kernel void broken(device float *a [[buffer(0)]]) { a[0] = b; }", name: "broken.metal"))
    expectRefused(create("broken"), MA_ERROR_SHADER_COMPILATION, "broken.metal", "undeclared identifier 'b'")
    #expect(pipeline == 77)
    let factor = constant(7, MA_DTYPE_U32, [3])
    expectRefused(create("scale", [factor, factor]), MA_ERROR_INVALID_ARGUMENT, "index 7", "twice")
    expectRefused(
      create("scale", [constant(7, 13, [])]), MA_ERROR_INVALID_ARGUMENT, "constants[0]", "dtype is 13", "i64")
    for components in [0, 5] as [UInt32] {
      expectRefused(
        create("scale", [constant(7, MA_DTYPE_U32, [3], components: components)]), MA_ERROR_INVALID_ARGUMENT,
        "constants[0]", "components is \(components)", "2 to 4")
    }
    "offset".withCString { name in
      var both = factor
      both.name = name
      expectRefused(create("scale", [both]), MA_ERROR_INVALID_ARGUMENT, "has a name and the index 7; give one of them")
    }
    expectRefused(
      create("scale", [constant(7, MA_DTYPE_BOOL, [0, 2], components: 2)]), MA_ERROR_INVALID_ARGUMENT, "not 2")
    // Of another type than the shader's.
    expectRefused(
      create("scale", [constant(7, MA_DTYPE_I32, [3])]), MA_ERROR_SHADER_COMPILATION, "'factor'", "type uint",
      "type int")
    expectRefused(
      create("scale", [constant(7, MA_DTYPE_U32, [3], components: 3)]), MA_ERROR_SHADER_COMPILATION, "type uint3")
    expectRefused(create("scale", [constant(7, MA_DTYPE_BOOL, [2])]), MA_ERROR_INVALID_ARGUMENT, "0 or 1")
    expectRefused(
      create("scale", [constant(7, MA_DTYPE_U8, [1, 1])]), MA_ERROR_INVALID_ARGUMENT, "2 bytes", "1 of u8 have 1")
    expectRefused(create("scale", [constant(65536, MA_DTYPE_U8, [1])]), MA_ERROR_INVALID_ARGUMENT, "65536")
    expectRefused(ma_source_register(device.handle, "a", "b\0c", 3, nil), MA_ERROR_INVALID_ARGUMENT, "NUL")
    expectRefused(ma_source_register(device.handle, "a", "b", 0, nil), MA_ERROR_INVALID_ARGUMENT, "length is 0")
    expectRefused(ma_source_register(device.handle, "", "b", 1, nil), MA_ERROR_INVALID_ARGUMENT, "name is empty")
  }

  @Test func aKernelThatAMacroNamesIsFoundByCompiling() {
    let source = """
      #define MAKE(name) kernel void name(device uint *a [[buffer(0)]]) { a[0] = 42; }
      MAKE(made_by_macro)
      """
    expectOK(device.register(source, name: "macro.metal"))
    let pipeline = device.pipeline("made_by_macro")
    let a = device.buffer(4)
    let pass = device.pass()
    expectOK(
      dispatch(pass, pipeline, a, a) { dispatch, bindings in
        dispatch.grid = (1, 1, 1)
        dispatch.bindingCount = 1
        bindings[0].access = UInt32(MA_ACCESS_READ | MA_ACCESS_WRITE)
      })
    run(pass)
    #expect(a.array(UInt32.self) == [42])
  }

  @Test func dispatchesThatCannotRunAreRefused() {
    expectOK(device.register(Self.scale))
    let pipeline = device.pipeline("scale", [constant(7, MA_DTYPE_U32, [3])])
    let (a, b) = (device.buffer(16), device.buffer(16))
    let pass = device.pass()
    func refused(
      _ code: Int, _ parts: String..., change: (inout MAKernelDispatch, inout [MABinding]) -> Void,
      location: SourceLocation = #_sourceLocation
    ) {
      let status = dispatch(pass, pipeline, a, b, change: change)
      #expect(status == code, "\(lastError)", sourceLocation: location)
      for part in parts { #expect(lastError.contains(part), "\(lastError)", sourceLocation: location) }
    }
    refused(MA_ERROR_INVALID_HANDLE, "pipeline") { dispatch, _ in dispatch.pipeline = 0 }
    refused(MA_ERROR_INVALID_ARGUMENT, "form is 2") { dispatch, _ in dispatch.form = 2 }
    refused(MA_ERROR_INVALID_ARGUMENT, "grid is 4 x 0 x 1") { dispatch, _ in dispatch.grid.1 = 0 }
    refused(MA_ERROR_INVALID_ARGUMENT, "2 x 1 x 0") { dispatch, _ in dispatch.threadsPerThreadgroup.2 = 0 }
    refused(MA_ERROR_INVALID_ARGUMENT, "1025 x 1 x 1", "1024") { dispatch, _ in
      dispatch.threadsPerThreadgroup.0 = 1025
    }
    refused(MA_ERROR_INVALID_ARGUMENT, "64 x 32 x 1", "1024 in all") { dispatch, _ in
      dispatch.threadsPerThreadgroup = (64, 32, 1)
    }
    refused(MA_ERROR_OVERFLOW, "2^32") { dispatch, _ in
      dispatch.form = UInt32(MA_DISPATCH_THREADGROUPS)
      dispatch.grid.0 = .max
    }
    refused(MA_ERROR_INVALID_ARGUMENT, "bindingCount is 575") { dispatch, _ in dispatch.bindingCount = 575 }
    refused(MA_ERROR_INVALID_ARGUMENT, "bindings[0]", "index is 31") { _, bindings in bindings[0].index = 31 }
    refused(MA_ERROR_INVALID_ARGUMENT, "bindings[2]", "bound twice") { _, bindings in bindings[2].index = 1 }
    refused(MA_ERROR_INVALID_ARGUMENT, "kind is 4") { _, bindings in bindings[0].kind = 4 }
    refused(MA_ERROR_INVALID_HANDLE, "bindings[0]") { _, bindings in bindings[0].buffer = pass }
    refused(MA_ERROR_INVALID_ARGUMENT, "access is 0") { _, bindings in bindings[0].access = 0 }
    refused(MA_ERROR_INVALID_ARGUMENT, "access is 4") { _, bindings in bindings[0].access = 4 }
    refused(MA_ERROR_INVALID_ARGUMENT, "length is 0") { _, bindings in bindings[0].length = 0 }
    refused(MA_ERROR_BUFFER_TOO_SMALL, "bindings[1]", "17 bytes", "16 bytes") { _, bindings in
      bindings[1].length = 17
    }
    refused(MA_ERROR_BUFFER_TOO_SMALL, "bindings[1]") { _, bindings in bindings[1].offset = .max }
    refused(MA_ERROR_INVALID_ARGUMENT, "bytes is NULL") { _, bindings in bindings[2].bytes = nil }
    refused(MA_ERROR_INVALID_ARGUMENT, "4097 bytes") { _, bindings in bindings[2].length = 4097 }
    refused(MA_ERROR_INVALID_ARGUMENT, "24 bytes", "16") { _, bindings in
      bindings[2].kind = UInt32(MA_BINDING_THREADGROUP)
      bindings[2].length = 24
    }
    let throughMemory = device.pipeline("through_memory")
    refused(MA_ERROR_INVALID_ARGUMENT, "32784", "32768") { dispatch, bindings in
      dispatch.pipeline = throughMemory
      bindings[0].access = UInt32(MA_ACCESS_READ | MA_ACCESS_WRITE)
      bindings[1] = bindings[0]
      (bindings[1].index, bindings[1].kind, bindings[1].length) = (2, UInt32(MA_BINDING_THREADGROUP), 32784)
      dispatch.bindingCount = 2
    }
    refused(MA_ERROR_OVERFLOW, "63 bits") { _, bindings in
      bindings[2].kind = UInt32(MA_BINDING_THREADGROUP)
      bindings[2].length = .max - 15
    }
    #expect(text { ma_pass_describe(pass, $0, $1, $2) } == "[]")
    expectOK(dispatch(pass, pipeline, a, b))
    run(pass)
    #expect(b.array(UInt32.self) == [1, 1, 1, 1])
  }
}
