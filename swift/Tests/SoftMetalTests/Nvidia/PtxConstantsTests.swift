import Testing

@testable import SoftMetal

/// Loads of function constants that become numbers.
@Suite struct PtxConstantsTests {
  private func settled(_ ptx: String, _ value: [UInt8], of symbol: String = "sm_constant_0") -> String {
    value.withUnsafeBytes { value in
      let text = PtxConstants.settled(ptx, [(symbol, value)]).dropLast()
      return String(decoding: text.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }

  @Test(arguments: [
    ("ld.global.nc.u32 \t%r30, [sm_constant_0];", "mov.b32 %r30, 0x04030281;"),
    ("ld.global.u8 %rs1, [sm_constant_0];", "mov.b16 %rs1, 0x0081;"),
    ("ld.global.s8 %rs1, [sm_constant_0];", "mov.b16 %rs1, 0xff81;"),
    ("ld.global.s8 %r1, [sm_constant_0];", "mov.b32 %r1, 0xffffff81;"),
    ("ld.global.nc.u16 %rs12, [sm_constant_0+2];", "mov.b16 %rs12, 0x0403;"),
    ("ld.global.nc.f32 %f2, [sm_constant_0+4];", "mov.f32 %f2, 0f08070605;"),
    ("ld.global.nc.u64 %rd2, [sm_constant_0];", "mov.b64 %rd2, 0x0807060504030281;"),
    ("ld.global.nc.f64 %fd2, [sm_constant_0];", "mov.f64 %fd2, 0d0807060504030281;"),
    (
      "ld.global.nc.v2.u32 {%r1, %r2}, [sm_constant_0];",
      "mov.b32 %r1, 0x04030281;\tmov.b32 %r2, 0x08070605;"
    ),
  ])
  func aLoadIsANumber(load: String, move: String) {
    let bytes: [UInt8] = [0x81, 2, 3, 4, 5, 6, 7, 8]
    let around = (".weak .global .align 4 .u32 sm_constant_0;\n{\n", "\n\tret;\n}\n")
    #expect(settled(around.0 + "\t" + load + around.1, bytes) == around.0 + "\t" + move + around.1)
  }

  /// Of other variables, beyond the value, into what is no register of a number, and what is no load.
  @Test(arguments: [
    "\tld.global.nc.u32 %r1, [sm_constant_1];\n", "\tld.global.nc.u64 %rd1, [sm_constant_0];\n",
    "\tld.global.nc.u32 %r1, [sm_constant_0+4];\n", "\tld.global.nc.u32 %q1, [sm_constant_0];\n",
    "\tst.global.u32 [sm_constant_0], %r1;\n", "\tld.param.u32 %r1, [sm_entry_1_param_0];\n",
    "\tmov.u64 %rd1, sm_constant_0;\n", "\tld.global.nc.u32 %r1, [sm_constant_00];\n", "[sm_", "",
  ])
  func allElseStays(text: String) {
    #expect(settled(text, [1, 2, 3, 4]) == text)
  }

  @Test func everyLoadOfAText() {
    let load = "\tld.global.nc.u32 %r1, [sm_defined_7];\n"
    let text = settled(load + "\tadd.u32 %r2, %r1, 1;\n" + load + load, [1, 0, 0, 0], of: "sm_defined_7")
    let move = "\tmov.b32 %r1, 0x00000001;\n"
    #expect(text == move + "\tadd.u32 %r2, %r1, 1;\n" + move + move)
  }
}
