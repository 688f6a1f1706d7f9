/// The arguments of a kernel template that an explicit instantiation leaves to its parameters' types, as in
/// `template kernel void f(device float *);` of `template <typename T> kernel void f(device T *out)`.
enum DeducedArguments {
  /// Nil where a template parameter stands in no pointer or reference of the kernel.
  static func of(_ function: Declaration, _ parameters: Range<Int>, _ list: TokenList) -> [String]? {
    let names = (function.templateParameters ?? []).map(\.name)
    let given = list.splitAtCommas(span(parameters.lowerBound + 1, parameters.upperBound - 1))
    var values: [String: String] = [:]
    for (pattern, type) in zip(list.splitAtCommas(function.parameters), given) {
      match(referent(pattern, list), referent(type, list), Set(names), &values)
    }
    let arguments = names.prefix { values[$0] != nil }.compactMap { values[$0] }
    let rest = (function.templateParameters ?? []).dropFirst(arguments.count)
    return rest.allSatisfy { !$0.defaultArgument.isEmpty } ? arguments : nil
  }

  /// The words of a pointer or reference up to its sign.
  private static func referent(_ tokens: Range<Int>, _ list: TokenList) -> [String] {
    let words = FunctionConstants.withoutAttributes(tokens, list).map { list.text($0) }
    return words.lastIndex { ["*", "&"].contains($0) }.map { Array(words[...$0]) } ?? []
  }

  private static func match(
    _ pattern: [String], _ type: [String], _ names: Set<String>, _ values: inout [String: String]
  ) {
    var place = 0
    for (index, word) in pattern.enumerated() {
      guard names.contains(word), index + 1 < pattern.count else {
        guard place < type.count, type[place] == word else { return }
        place += 1
        continue
      }
      let next = pattern[index + 1]
      guard let end = type[place...].firstIndex(of: next), end > place else { return }
      values[word] = type[place..<end].joined(separator: " ")
      place = end
    }
  }
}
