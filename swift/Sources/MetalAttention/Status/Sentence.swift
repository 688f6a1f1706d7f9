/// The name of an argument or of a field as the C headers have it, for
/// messages: a caller may name it otherwise (`ArgumentNames`).
enum Argument: ExpressibleByStringLiteral, CustomStringConvertible {
  /// Costs nothing until a message is made of it.
  case literal(StaticString)
  /// For example an element of a list.
  case made(String)
  /// An argument of a dispatch of any kernel, element `position` of its list of
  /// bindings: `[[buffer(index)]]`, or the like as `kind` says. Without a
  /// position it is missing in the list.
  case binding(kind: StaticString, index: Int, position: Int?)

  init(_ name: String) {
    self = .made(name)
  }

  init(stringLiteral name: StaticString) {
    self = .literal(name)
  }

  var description: String {
    switch self {
    case .literal(let name): "\(name)"
    case .made(let name): name
    case .binding(_, _, let position?): "bindings[\(position)]"
    case .binding(let kind, let index, nil): "\(kind)(\(index))"
    }
  }

  /// The caller's name, where `known` has one for the C name; of a binding, for
  /// its kind.
  func name(_ known: (String) -> String?) -> String {
    guard case .binding(let kind, let index, _) = self else { return known(description) ?? description }
    return known("\(kind)").map { "\($0)[\(index)]" } ?? description
  }
}

/// A message that knows which of its words are names of arguments. The first
/// of them is the argument at fault.
///
///     "\(arg: "nNew") \(nNew) exceeds \(arg: "cacheCap") \(cacheCap)"
struct Sentence: ExpressibleByStringInterpolation {
  fileprivate enum Part {
    case text(String)
    case argument(Argument)
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    init(literalCapacity: Int, interpolationCount: Int) {
      parts.reserveCapacity(2 * interpolationCount + 1)
    }

    mutating func appendLiteral(_ text: String) {
      parts.append(.text(text))
    }

    mutating func appendInterpolation(_ value: some Any) {
      parts.append(.text("\(value)"))
    }

    mutating func appendInterpolation(_ sentence: Sentence) {
      parts += sentence.parts
    }

    mutating func appendInterpolation(_ argument: Argument) {
      parts.append(.argument(argument))
    }

    mutating func appendInterpolation(_ tensor: TensorName) {
      parts.append(.argument(.made("\(tensor)")))
    }

    mutating func appendInterpolation(arg argument: Argument) {
      appendInterpolation(argument)
    }
  }

  private let parts: [Part]

  init(stringLiteral text: String) {
    parts = [.text(text)]
  }

  init(stringInterpolation: StringInterpolation) {
    parts = stringInterpolation.parts
  }

  private init(_ parts: [Part]) {
    self.parts = parts
  }

  static func + (left: Sentence, right: Sentence) -> Sentence {
    Sentence(left.parts + right.parts)
  }

  /// The sentence with every argument under the caller's name from now on.
  func renamed(_ known: (String) -> String?) -> Sentence {
    Sentence(
      parts.map { part in
        guard case .argument(let argument) = part else { return part }
        return .argument(.made(argument.name(known)))
      })
  }

  /// The first argument that the sentence names.
  var argument: Argument? {
    for case .argument(let name) in parts { return name }
    return nil
  }

  /// The sentence with every argument under the caller's name, as far as
  /// `known` has it.
  func text(_ known: (String) -> String?) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .argument(let argument): argument.name(known)
      }
    }.joined()
  }
}
