import CSoftMetal
import Testing

@testable import SoftMetal

@Suite struct KernelFaultTests {
  private func error(_ kind: Int, _ access: Int = 0, at address: UInt64 = 0) -> MTLCommandBufferError {
    var dispatch = SmDispatch()
    dispatch.buffers.1 = UnsafeMutableRawPointer(bitPattern: 0x7000_0000_0000)
    dispatch.buffers.4 = UnsafeMutableRawPointer(bitPattern: 0x7000_1000_0000)
    let fault = SmFault(kind: UInt32(kind), access: UInt32(access), address: address)
    return KernelFault(fault, dispatch).error(in: "kernel 'k' (dispatch 2 of 3)")
  }

  @Test func anAddressOutsideIsMeasuredFromTheNearestBuffer() {
    let behind = error(Int(SM_FAULT_UNMAPPED), Int(SM_FAULT_WRITE), at: 0x7000_1000_0000 + 4096)
    #expect(behind.code == .pageFault)
    #expect(
      "\(behind)"
        == "kernel 'k' (dispatch 2 of 3) wrote to address 0x700010001000, where there is no memory: outside "
        + "its buffers, 4096 bytes behind where buffer(4) is bound")
    let before = error(Int(SM_FAULT_PROTECTED), Int(SM_FAULT_READ), at: 0x7000_0000_0000 - 65536)
    #expect(before.code == .pageFault)
    #expect(
      "\(before)" == "kernel 'k' (dispatch 2 of 3) read from address 0x6fffffff0000, which is protected: outside its "
        + "buffers, 65536 bytes before where buffer(1) is bound")
  }

  @Test func anAddressFarFromAllIsNotMeasured() {
    let far = error(Int(SM_FAULT_UNMAPPED), Int(SM_FAULT_EXECUTE), at: 0x100_0000_0000)
    #expect(
      "\(far)" == "kernel 'k' (dispatch 2 of 3) jumped to address 0x10000000000, where there is no memory: outside its "
        + "buffers")
    #expect(
      "\(error(Int(SM_FAULT_UNMAPPED), Int(SM_FAULT_READ), at: .max))".contains("read from address 0xffffffffffffffff")
    )
  }

  @Test(arguments: [
    (Int(SM_FAULT_UNMAPPED), 24, MTLCommandBufferError.Code.pageFault, "touched address 0x18: a null pointer"),
    (Int(SM_FAULT_NO_ADDRESS), 0, .pageFault, "touched an address that no memory can have"),
    (Int(SM_FAULT_STACK), 0x7000_0000_0000, .stackOverflow, "a thread ran out of stack"),
    (Int(SM_FAULT_ARITHMETIC), 0, .internal, "an arithmetic operation has no result"),
    (Int(SM_FAULT_INSTRUCTION), 0, .internal, "cannot be reached"),
  ])
  func everyKindHasWords(kind: Int, address: UInt64, code: MTLCommandBufferError.Code, words: String) {
    let error = error(kind, at: address)
    #expect(error.code == code)
    #expect("\(error)".hasPrefix("kernel 'k' (dispatch 2 of 3)"))
    #expect("\(error)".contains(words))
  }
}
