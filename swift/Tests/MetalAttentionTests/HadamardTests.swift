import CMetalAttention
import Testing

@testable import MetalAttention

@Suite struct HadamardTests {
  /// The name of a kernel, from the parts that the reference builds it of.
  private func name(_ task: HadamardKernel.Task, _ packing: Packing, _ headDim: UInt32) -> String {
    let stem = ["hadamard_quantize_kv", "hadamard_quantize_kv_seq", "hadamard_dequantize_kv"][task.rawValue]
    let isSized = [64, 80, 96, 112, 128, 192, 256, 512].contains(headDim)
    switch packing {
    case .nibble: return isSized ? "\(stem)_fast_d\(headDim)" : stem
    case .byte: return isSized ? "\(stem)_hb_d\(headDim)" : "\(stem)_hb"
    case .dense: return isSized ? "\(stem)_dense_d\(headDim)" : "\(stem)_dense"
    }
  }

  @Test func theIndexOfEveryCombinationLeadsToItsKernel() throws {
    var names: Set<String> = []
    for task in HadamardKernel.Task.allCases {
      for packing in Packing.allCases {
        for headDim: UInt32 in [4, 8, 64, 80, 96, 112, 128, 192, 256, 512, 1024, 4096] {
          let expected = name(task, packing, headDim)
          #expect(try BuiltInKernel.all[HadamardKernel.index(task, packing, headDim)].name == expected)
          names.insert(expected)
        }
      }
    }
    for headDim: UInt32 in [4, 8, 64, 80, 96, 112, 128, 192, 256, 512, 1024, 4096] {
      let isSized = [64, 80, 96, 112, 128, 192, 256, 512].contains(headDim)
      let expected = "hadamard_quantize_kv_seq_mixed" + (isSized ? "_d\(headDim)" : "")
      #expect(try BuiltInKernel.all[HadamardKernel.mixedIndex(headDim)].name == expected)
      names.insert(expected)
    }
    #expect(names == Set(HadamardKernel.family.kernels))
    #expect(HadamardKernel.family.kernels.count == 3 * 3 * 9 + 9)
  }

  @Test(arguments: HadamardKernel.Task.allCases, [4, 64, 80, 128, 192, 256, 512, 1024, 4096] as [UInt32])
  func threadgroupMemoryFitsAndIsAMultipleOf16(task: HadamardKernel.Task, headDim: UInt32) {
    switch HadamardKernel.threads(task, headDim) {
    case .perVector(let lanes):
      #expect(lanes.nonzeroBitCount == 1 && lanes <= 32)
    case .threadgroup(let limit, let memory):
      #expect(memory % 16 == 0 && memory <= 32768)
      #expect(limit >= 1 && limit <= headDim)
    }
  }

  /// What no test touches of these buffers is not backed by memory.
  @Test func moreThreadsThan32BitsCountAreRefusedBeforeTheKernelIsCompiled() throws {
    let device = TestDevice()
    let heads: UInt32 = 1 << 15
    let vectors = UInt64(heads) * UInt64(heads)
    let (packed, norms, out) = (device.buffer(vectors), device.buffer(4 * vectors), device.buffer(8 * vectors))
    var args = MAHadamardDequantizeKvArgs()
    args.packedK = packed.tensor(MA_DTYPE_U8)
    args.normsK = norms.tensor(MA_DTYPE_F32)
    args.outK = out.tensor(MA_DTYPE_BF16)
    args.params = HadamardDequantizeParams(
      head_dim: 4, num_kv_heads: heads, read_pos_start: 0, cache_capacity: heads, is_sliding: 0,
      scale_factor_d512: 1, codebook_bits: 2, n_tokens: heads, out_dtype: 0)
    args.packing = Packing.dense.rawValue
    args.batch = 1
    let pass = device.pass()
    defer { _ = ma_pass_release(pass) }
    expectRefused(ma_hadamard_dequantize_kv(pass, &args), MA_ERROR_OVERFLOW, "\(heads)", "\(UInt32.max)")
    let slot = try PipelineSlot(kernel: HadamardKernel.index(.decode, .dense, 4), variant: 0)
    let registry = try HandleSpace.devices.open(device.handle, "device").registry
    #expect(HandleSpace.lock.withLock { registry.pipeline(slot) == nil })
  }

  @Test func aRunThatWrapsIsTwoRanges() {
    let array = HeadMajor(nHeads: 3, capacity: 10, rowSize: 4)
    let plain = array.slots(4, from: 23)
    #expect(plain.elements == 12..<(4 * 27) && plain.wrapped.isEmpty)
    let toTheEnd = array.slots(3, from: 7)
    #expect(toTheEnd.elements == 28..<120 && toTheEnd.wrapped.isEmpty)
    let wrapped = array.slots(5, from: 18)
    #expect(wrapped.elements == 32..<120 && wrapped.wrapped == 0..<12)
    let whole = array.slots(10, from: 5)
    #expect(whole.elements == 20..<120 && whole.wrapped == 0..<20)
  }
}
