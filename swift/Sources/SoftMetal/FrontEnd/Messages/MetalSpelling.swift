/// Messages of clang's in the words of Metal.
enum MetalSpelling {
  /// - Parameter headerFolder: taken off the names of our headers.
  static func of(_ message: String, _ headerFolder: String) -> String {
    var text = message
    for (from, to) in phrases { text = replace(text, from, to) }
    text = replace(text, headerFolder + "/", "")
    if let space = objectSpace(text) { return "this member function is not qualified for an object in \(space) memory" }
    // Types stand in quotes.
    let parts = text.split(separator: "'", omittingEmptySubsequences: false).map { TypeSpelling.of(Array($0.utf8)) }
    return withoutRepetition(parts).joined(separator: "'")
  }

  private static let phrases = [
    (" declared with 'error' attribute: ", ", "),
    ("variable does not have a constant initializer", dynamicInitialiser),
    ("initializer element is not a compile-time constant", dynamicInitialiser),
    (
      "invalid prototype, variadic arguments are not allowed in OpenCL",
      "variadic functions are not supported in Metal"
    ),
    (
      " may not intend to support class template argument deduction",
      " needs its template arguments: Metal is C++14, where no constructor's say what they are"
    ),
    ("add a deduction guide to suppress this warning", "the class template is declared here"),
    ("non-kernel function variable cannot", "function scope variable cannot"),
    ("cannot be declared in global address space", "cannot be declared in device address space"),
    ("cannot be declared in local address space", "cannot be declared in threadgroup address space"),
    ("no setter defined for property", "not assignable, since it names a component twice:"),
    (
      "array size is not a constant expression",
      "variable length arrays are not supported in Metal: the size is not a constant expression"
    ),
  ]

  private static let dynamicInitialiser =
    "the initializer of a variable in constant address space is not a constant expression"

  /// The memory of an object for which a member function is not made, where a message says so.
  private static func objectSpace(_ message: String) -> String? {
    guard message.hasPrefix("cannot initialize object parameter of type") else { return nil }
    let object = message.split(separator: "'").last { $0.contains("_") }.map { TypeSpelling.of(Array($0.utf8)) }
    let words = object?.split(separator: " ") ?? []
    return AddressSpace.all.first { words.contains(Substring($0)) } ?? "thread"
  }

  /// Drops ` (aka 'T')` behind `'T'`, and puts it in the place of a type whose name is ours.
  private static func withoutRepetition(_ parts: [String]) -> [String] {
    var result: [String] = []
    var index = 0
    while index < parts.count {
      result.append(parts[index])
      let isOurs = parts[index].hasPrefix("__remove_reference_t(") || parts[index].contains("sm_type_")
      if index + 3 < parts.count, parts[index + 1] == " (aka ", isOurs || parts[index + 2] == parts[index],
        parts[index + 3].hasPrefix(")")
      {
        result[result.count - 1] = parts[index + 2]
        result.append(String(parts[index + 3].dropFirst()))
        index += 3
      }
      index += 1
    }
    return result
  }

  static func replace(_ text: String, _ from: String, _ to: String) -> String {
    let bytes = Array(text.utf8)
    let pattern = Array(from.utf8)
    guard !pattern.isEmpty else { return text }
    var result: [UInt8] = []
    var position = 0
    while let match = find(pattern, in: bytes, from: position) {
      result += bytes[position..<match] + Array(to.utf8)
      position = match + pattern.count
    }
    return String(decoding: result + bytes[position...], as: UTF8.self)
  }

  /// Where `pattern` first stands at or behind `start`, or nil.
  static func find(_ pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard start + pattern.count <= bytes.count else { return nil }
    return (start...bytes.count - pattern.count).first { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
  }
}

/// A type as clang writes it, such as `const __global vec<float, 3> *__private`, as the user does:
/// `const device float3 *`.
private struct TypeSpelling {
  private let bytes: [UInt8]
  private let tokens: [Token]
  private var result = ""
  /// Up to where the text is done.
  private var done = 0

  static func of(_ bytes: [UInt8]) -> String {
    var spelling = TypeSpelling(bytes)
    var index = 0
    while index < spelling.tokens.count { index = spelling.lower(index) }
    return spelling.result + String(decoding: bytes[spelling.done...], as: UTF8.self)
  }

  private init(_ bytes: [UInt8]) {
    self.bytes = bytes
    tokens = Tokenizer.tokenize(bytes)
  }

  private func text(_ index: Int) -> String { tokens.indices.contains(index) ? tokens[index].text : "" }

  private static let words = [
    "__global": "device", "__local": "threadgroup", "__constant": "constant", "_Float16": "half", "__bf16": "bfloat",
  ]

  /// Appends the token at `index`; returns the index behind what it stands for.
  private mutating func lower(_ index: Int) -> Int {
    let token = text(index)
    if token == "metal", text(index + 1) == "::" {
      drop(index)
      drop(index + 1)
      return index + 2
    }
    if token == "const", text(index + 1) == "__constant" || text(index + 1) == "constant" {
      drop(index)
      return index + 1
    }
    if token == "__generic" || token == "__private" && !isPointee(index) {
      drop(index)
      return index + 1
    }
    if token == "__private" {
      append("thread", index..<index + 1)
      return index + 1
    }
    if let (name, end) = vector(index) {
      append(name, index..<end)
      return end
    }
    if let word = Self.words[token] { append(word, index..<index + 1) }
    return index + 1
  }

  private mutating func append(_ text: String, _ range: Range<Int>) {
    let start = tokens[range.lowerBound].range.lowerBound
    result += String(decoding: bytes[done..<start], as: UTF8.self) + text
    done = tokens[range.upperBound - 1].range.upperBound
  }

  /// Leaves a token and the space behind it out.
  private mutating func drop(_ index: Int) {
    append("", index..<index + 1)
    if done < bytes.count, bytes[done] == UInt8(ascii: " ") { done += 1 }
  }

  /// Whether the `__private` at `index` qualifies what a pointer or reference refers to.
  private func isPointee(_ index: Int) -> Bool {
    guard !["*", "&", "&&"].contains(text(index - 1)) else { return false }
    var position = index + 1
    var depth = 0
    while position < tokens.count {
      switch text(position) {
      case "<": depth += 1
      case ">": depth -= 1
      case "*", "&", "&&", "[": if depth <= 0 { return true }
      case ",", ")", "(": if depth <= 0 { return false }
      default: break
      }
      if depth < 0 { return false }
      position += 1
    }
    return false
  }

  private static let elements = [
    "bool": "bool", "char": "char", "signed char": "char", "unsigned char": "uchar", "short": "short",
    "unsigned short": "ushort", "int": "int", "unsigned int": "uint", "long": "long", "unsigned long": "ulong",
    "half": "half", "_Float16": "half", "__bf16": "bfloat", "float": "float",
  ]

  /// The name of the built-in vector or matrix type at `index`, and the index behind it.
  private func vector(_ index: Int) -> (String, Int)? {
    guard ["vec", "packed_vec", "matrix"].contains(text(index)), text(index + 1) == "<" else { return nil }
    let rest = tokens[(index + 2)...]
    guard let close = rest.firstIndex(where: { $0.text == ">" }) else { return nil }
    let parts = tokens[index + 2..<close].split { $0.text == "," }.map { $0.map(\.text).joined(separator: " ") }
    guard let first = parts.first, let element = Self.elements[first],
      parts.dropFirst().allSatisfy({ ["2", "3", "4"].contains($0) })
    else { return nil }
    if text(index) == "matrix", parts.count == 3 { return ("\(element)\(parts[1])x\(parts[2])", close + 1) }
    guard parts.count == 2 else { return nil }
    return ((text(index) == "vec" ? "" : "packed_") + element + parts[1], close + 1)
  }
}
