import CMetalAttention
import Testing

@testable import MetalAttention

/// What a caller binds, held against the kernel's own signature.
@Suite struct SignatureTests {
  let device = TestDevice()

  private static let source = """
    #include <metal_stdlib>
    using namespace metal;
    constant bool has_bias [[function_constant(0)]];
    kernel void wide(device const float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                     constant float4 &factor [[buffer(2)]],
                     device const float4 *bias [[buffer(3), function_constant(has_bias)]],
                     threadgroup float4x4 *tile [[threadgroup(1)]], uint i [[thread_index_in_threadgroup]]) {
      if (i == 0) tile[0] = float4x4(1.0f);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = tile[0] * (factor * in[i] + (has_bias ? bias[i] : 0.0f));
    }
    """

  private let readWrite = UInt32(MA_ACCESS_READ | MA_ACCESS_WRITE)

  private func constant(_ value: UInt8) -> MAConstant {
    var constant = MAConstant()
    (constant.dtype, constant.components, constant.value.0) = (UInt32(MA_DTYPE_BOOL), 1, value)
    return constant
  }

  private func buffer(_ index: UInt32, _ buffer: TestBuffer, access: UInt32, offset: UInt64 = 0) -> MABinding {
    MABinding(
      index: index, kind: UInt32(MA_BINDING_BUFFER), buffer: buffer.handle, access: access, offset: offset,
      length: buffer.length - offset, bytes: nil)
  }

  private func bytes(_ index: UInt32, _ address: UnsafeRawPointer?, length: UInt64) -> MABinding {
    MABinding(
      index: index, kind: UInt32(MA_BINDING_BYTES), buffer: 0, access: 0, offset: 0, length: length, bytes: address)
  }

  private func threadgroup(_ index: UInt32, _ length: UInt64) -> MABinding {
    MABinding(
      index: index, kind: UInt32(MA_BINDING_THREADGROUP), buffer: 0, access: 0, offset: 0, length: length, bytes: nil)
  }

  private func encode(_ pass: ma_pass, _ pipeline: ma_pipeline, _ bindings: [MABinding]) -> Int32 {
    var dispatch = MAKernelDispatch()
    dispatch.pipeline = pipeline
    dispatch.form = UInt32(MA_DISPATCH_THREADS)
    dispatch.grid = (4, 1, 1)
    dispatch.threadsPerThreadgroup = (4, 1, 1)
    dispatch.bindingCount = UInt32(bindings.count)
    return bindings.withUnsafeBufferPointer { bindings in
      dispatch.bindings = bindings.baseAddress
      return ma_encode_kernel(pass, &dispatch)
    }
  }

  @Test func bindingsAreHeldAgainstTheKernel() {
    expectOK(device.register(Self.source))
    let plain = device.pipeline("wide", [constant(0)])
    let biased = device.pipeline("wide", [constant(1)])
    let (input, output) = (device.buffer([Float](repeating: 3, count: 20)), device.buffer(80))
    let read = UInt32(MA_ACCESS_READ)
    let factors: [Float] = [1, 2, 3, 4]
    factors.withUnsafeBytes { factors in
      let address = factors.baseAddress
      let valid = [
        buffer(0, input, access: read), buffer(1, output, access: readWrite), bytes(2, address, length: 16),
        threadgroup(1, 64),
      ]
      let pass = device.pass()
      func refused(
        _ code: Int, _ parts: String..., pipeline: ma_pipeline? = nil, location: SourceLocation = #_sourceLocation,
        change: (inout [MABinding]) -> Void
      ) {
        var bindings = valid
        change(&bindings)
        #expect(encode(pass, pipeline ?? plain, bindings) == code, "\(lastError)", sourceLocation: location)
        for part in parts { #expect(lastError.contains(part), "\(lastError)", sourceLocation: location) }
      }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[4]", "wide has no argument buffer(7)", "buffer(0) in") {
        $0.append(buffer(7, input, access: read))
      }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[4]", "no argument buffer(3)") {
        $0.append(buffer(3, input, access: read))
      }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[4]", "no argument threadgroup(0)", "threadgroup(1) tile") {
        $0.append(threadgroup(0, 64))
      }
      refused(MA_ERROR_INVALID_ARGUMENT, "buffer(0): argument in of kernel wide is missing") { $0.remove(at: 0) }
      refused(MA_ERROR_INVALID_ARGUMENT, "buffer(1): argument out of kernel wide is missing") { $0.remove(at: 1) }
      refused(MA_ERROR_INVALID_ARGUMENT, "buffer(2): argument factor of kernel wide is missing") { $0.remove(at: 2) }
      refused(MA_ERROR_INVALID_ARGUMENT, "threadgroup(1): argument tile of kernel wide is missing") { $0.remove(at: 3) }
      refused(MA_ERROR_INVALID_ARGUMENT, "buffer(3): argument bias of kernel wide", pipeline: biased) { _ in }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[1]: its access", "argument out of kernel wide") {
        $0[1].access = read
      }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[1]", "argument out", "copy") {
        $0[1] = bytes(1, address, length: 16)
      }
      refused(MA_ERROR_BUFFER_TOO_SMALL, "bindings[0]", "12 bytes", "argument in", "16") { $0[0].length = 12 }
      refused(MA_ERROR_BUFFER_TOO_SMALL, "bindings[2]", "8 bytes", "argument factor", "16") { $0[2].length = 8 }
      refused(MA_ERROR_BUFFER_TOO_SMALL, "bindings[3]", "48 bytes", "argument tile", "64") { $0[3].length = 48 }
      refused(MA_ERROR_INVALID_ARGUMENT, "bindings[0]", "byte 8", "argument in", "multiple of 16") {
        $0[0] = buffer(0, input, access: read, offset: 8)
      }
      #expect(text { ma_pass_describe(pass, $0, $1, $2) } == "[]")
      expectOK(encode(pass, plain, valid))
      // An argument that is only read may be bound for writing, which orders more than it must.
      expectOK(encode(pass, biased, valid + [buffer(3, input, access: readWrite)]))
      run(pass)
      #expect(output.array(Float.self).prefix(8) == [6, 9, 12, 15, 6, 9, 12, 15])
    }
  }

  /// A binding as a Mac may report it.
  private final class Reported: MTLBinding {
    let name: String
    let type: MTLBindingType
    let access = MTLBindingAccess.readOnly
    let index = 0
    let isUsed: Bool
    let isArgument: Bool

    init(_ name: String, _ type: MTLBindingType, isUsed: Bool = true, isArgument: Bool = true) {
      (self.name, self.type, self.isUsed, self.isArgument) = (name, type, isUsed, isArgument)
    }
  }

  @Test func onlyWhatTheCallerCanBindIsPartOfASignature() {
    let variable = Reported("local", .threadgroupMemory, isArgument: false)
    let unused = Reported("unused", .texture, isUsed: false)
    #expect(KernelSignature([variable, unused]).list == "none")
    #expect(KernelSignature([variable, unused]).unbindable == nil)
    #expect(KernelSignature([variable, Reported("image", .texture)]).unbindable == "image")
  }
}
