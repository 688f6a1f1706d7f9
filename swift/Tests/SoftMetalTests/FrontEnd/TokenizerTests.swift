import Testing

@testable import SoftMetal

@Suite struct TokenizerTests {
  func spell(_ text: String) -> [String] {
    let bytes = Array(text.utf8)
    return Tokenizer.tokenize(bytes).map { String(decoding: bytes[$0.range], as: UTF8.self) }
  }

  func kinds(_ text: String) -> [Token.Kind] {
    Tokenizer.tokenize(Array(text.utf8)).map(\.kind)
  }

  @Test func namesNumbersPunctuators() {
    #expect(spell("a1 = 0x1F.8p-3f+1e+5*1'000u;") == ["a1", "=", "0x1F.8p-3f", "+", "1e+5", "*", "1'000u", ";"])
    #expect(spell(".5f ...x") == [".5f", "...", "x"])
    #expect(spell("a->b::c<<=d") == ["a", "->", "b", "::", "c", "<<=", "d"])
    #expect(kinds("a 1 'c' \"s\" +") == [.identifier, .number, .character, .string, .punctuation])
  }

  @Test func closingAnglesStayApart() {
    #expect(spell("A<B<C>>") == ["A", "<", "B", "<", "C", ">", ">"])
    #expect(spell("a>>=b>=c") == ["a", ">", ">=", "b", ">=", "c"])
  }

  @Test func commentsAreNoTokens() {
    #expect(spell("a/* kernel \" ' // */b // c \\\n still comment\nd") == ["a", "b", "d"])
    #expect(spell("a /*/ b /*/ c") == ["a", "c"])
    #expect(spell("a / b /* unterminated") == ["a", "/", "b"])
    #expect(spell("// \"\nkernel") == ["kernel"])
  }

  @Test func stringsHideTheirContent() {
    #expect(spell(#""a\"/*" "//" b"#) == [#""a\"/*""#, #""//""#, "b"])
    #expect(spell(#"'"' "'" '\''"#) == [#"'"'"#, #""'""#, #"'\''"#])
    #expect(spell("\"unterminated\nkernel") == ["\"unterminated", "kernel"])
    #expect(spell("u8\"x\" L'y' u\"z\"") == ["u8\"x\"", "L'y'", "u\"z\""])
  }

  @Test func rawStrings() {
    #expect(spell("R\"(a \" \\ )\" b") == ["R\"(a \" \\ )\"", "b"])
    #expect(spell("R\"x(a)\" // )x\" c") == ["R\"x(a)\" // )x\"", "c"])
    #expect(spell("R\"(two\nlines)\" d") == ["R\"(two\nlines)\"", "d"])
    #expect(spell("R\"(unterminated") == ["R\"(unterminated"])
  }

  @Test func preprocessorLinesAreWhole() {
    let text = "#define A(x) \\\n  kernel /* a\n b */ x // y\nint\n  # pragma once\na # b"
    #expect(spell(text) == ["#define A(x) \\\n  kernel /* a\n b */ x // y", "int", "# pragma once", "a", "#", "b"])
    #expect(kinds(text).filter { $0 == .directive }.count == 2)
  }

  @Test func linesAndColumns() {
    let source = SourceText(Array("ab\n\tc\r\n".utf8))
    #expect(source.line(at: 0) == 1)
    #expect(source.line(at: 4) == 2)
    #expect(source.column(at: 4) == 2)
    #expect(String(decoding: source.bytes(ofLine: 2), as: UTF8.self) == "\tc")
    #expect(source.bytes(ofLine: 9).isEmpty)
  }

  @Test func everyCutOfAHostileTextEnds() {
    let text = Array("R\"x(\"'\\\n/*#<{[(\"u8R\"(a)\"1'e+\\".utf8)
    for end in 0...text.count {
      let tokens = Tokenizer.tokenize(Array(text[..<end]))
      #expect(tokens.allSatisfy { !$0.range.isEmpty && $0.range.upperBound <= end })
    }
  }

  @Test func anglesAndBrackets() {
    let list = TokenList(SourceText(Array("f<g<(1 > 2)>, h[3]>(x) < y;".utf8)))
    #expect(list.closingAngle(1).map { list.text($0 + 1) } == "(")
    #expect(list.indices.last { list.text($0) == "<" }.map { list.closingAngle($0) } == .some(nil))
    #expect(list.isBalanced)
    #expect(!TokenList(SourceText(Array("f(a[1)]".utf8))).isBalanced)
  }
}
