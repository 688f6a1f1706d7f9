import Testing

@testable import SoftMetal

/// What PTX says of arguments by value.
@Suite struct ValueArgumentTests {
  @Test func eachIsNamedOnce() {
    let entry = "{\n\t// begin inline asm\n\t// sm_value 4 464 160\n\t// sm_value 30 624 24\n\tret;\n}\n"
    let expected = [
      ValueArgument(index: 4, offset: 464, length: 160), ValueArgument(index: 30, offset: 624, length: 24),
    ]
    #expect(ValueArgument.named(in: entry + entry) == expected)
    #expect(ValueArgument.named(in: "{ ret; }") == [])
  }

  @Test(arguments: [
    "31 464 4", "-1 464 4", "0 448 4", "0 464 -1", "0 464 0", "0 464 3633", "0 4100 1", "0 9223372036854775807 4",
    "0 464", "", "x",
  ])
  func whatIsNoPlaceIsLeftOut(numbers: String) {
    #expect(ValueArgument.named(in: "// sm_value \(numbers)") == [])
  }

  @Test func theLastPlaceIsOne() {
    #expect(ValueArgument.named(in: "// sm_value 0 464 3632") == [ValueArgument(index: 0, offset: 464, length: 3632)])
  }
}
