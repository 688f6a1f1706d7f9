import CMetalAttention
import Testing

@testable import MetalAttention

@Suite struct HadamardTests {
  /// The name of a kernel, from the parts that the reference builds it of.
  private func name(_ task: HadamardKernel.Task, _ packing: HadamardFormat.Packing, _ headDim: UInt32) -> String {
    let stem = ["hadamard_quantize_kv", "hadamard_quantize_kv_seq", "hadamard_dequantize_kv"][task.rawValue]
    let isSized = [64, 80, 96, 112, 128, 192, 256, 512].contains(headDim)
    switch packing {
    case .nibble: return isSized ? "\(stem)_fast_d\(headDim)" : stem
    case .byte: return isSized ? "\(stem)_hb_d\(headDim)" : "\(stem)_hb"
    case .dense: return isSized ? "\(stem)_dense_d\(headDim)" : "\(stem)_dense"
    }
  }

  @Test func theIndexOfEveryCombinationLeadsToItsKernel() {
    var names: Set<String> = []
    for task in HadamardKernel.Task.allCases {
      for packing in HadamardFormat.Packing.allCases {
        for headDim: UInt32 in [4, 8, 64, 80, 96, 112, 128, 192, 256, 512, 1024, 4096] {
          let expected = name(task, packing, headDim)
          #expect(BuiltInKernel.all[HadamardKernel.index(task, packing, headDim)].name == expected)
          names.insert(expected)
        }
      }
    }
    #expect(names == Set(HadamardKernel.names))
    #expect(HadamardKernel.names.count == 3 * 3 * 9)
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
