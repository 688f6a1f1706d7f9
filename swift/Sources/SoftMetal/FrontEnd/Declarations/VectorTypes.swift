/// The names in a source that stand for vector types, or may: those built in,
/// aliases of them, and type parameters of templates. With them half and
/// bfloat, between which clang itself does not convert.
struct VectorTypes {
  /// The types that a component may have.
  static let components: Set<String> = [
    "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat",
  ]

  static let builtIn: Set<String> = {
    var names: Set<String> = ["vec", "half", "bfloat"]
    for scalar in components {
      for width in 2...4 {
        names.insert("\(scalar)\(width)")
        for prefix in ["packed", "simd", "vector"] { names.insert("\(prefix)_\(scalar)\(width)") }
      }
    }
    return names
  }()

  /// `float2x2` to `half4x4`, and their names in `<simd/simd.h>`.
  static let matrices: Set<String> = Set(
    ["float", "half"].flatMap { scalar in
      (2...4).flatMap { columns in (2...4).map { rows in "\(scalar)\(columns)x\(rows)" } }
    }.flatMap { [$0, "simd_\($0)", "matrix_\($0)"] })

  static let scalars: Set<String> = components.subtracting(["half", "bfloat"]).union([
    "void", "size_t", "ptrdiff_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
    "uint64_t", "unsigned", "signed",
  ])

  private(set) var aliases: Set<String> = []

  init(_ list: TokenList) {
    let classes = Self.classNames(list)
    for token in list.indices {
      if list.text(token) == "using", list.isIdentifier(token + 1), list.text(token + 2) == "=" {
        add(token + 1, type: span(token + 3, list.statementEnd(token)), classes, list)
      } else if list.text(token) == "typedef" {
        let end = list.statementEnd(token)
        if list.isIdentifier(end - 1) { add(end - 1, type: span(token + 1, end - 1), classes, list) }
      }
    }
  }

  func contains(_ name: String) -> Bool {
    Self.builtIn.contains(name) || aliases.contains(name)
  }

  private mutating func add(_ name: Int, type: Range<Int>, _ classes: Set<String>, _ list: TokenList) {
    guard let head = Self.head(type, list) else { return }
    if Self.scalars.contains(list.text(head)) || classes.contains(list.text(head)) { return }
    aliases.insert(list.text(name))
  }

  /// The token that names the type, without its qualification and arguments;
  /// nil for pointers, references, arrays and definitions.
  private static func head(_ type: Range<Int>, _ list: TokenList) -> Int? {
    var head: Int?
    var position = type.lowerBound
    while position < type.upperBound {
      switch list.text(position) {
      case "<":
        guard let close = list.closingAngle(position) else { return nil }
        position = close
      case "(": position = list.after(position) - 1
      case "*", "&", "[", "{": return nil
      default:
        if list.isIdentifier(position) { head = position }
      }
      position += 1
    }
    return head
  }

  private static func classNames(_ list: TokenList) -> Set<String> {
    var names: Set<String> = []
    for token in list.indices where ClassDefinition.typeKeys.contains(list.text(token)) {
      guard list.isIdentifier(token + 1), list.text(token - 1) != "<", list.text(token - 1) != "," else { continue }
      names.insert(list.text(token + 1))
      if ["struct", "class"].contains(list.text(token + 1)) { names.insert(list.text(token + 2)) }
    }
    return names
  }
}
