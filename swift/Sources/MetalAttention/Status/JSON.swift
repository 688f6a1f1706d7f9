/// JSON text from parts that are JSON already.
enum JSON {
  static func array(_ elements: [String]) -> String {
    "[\(elements.joined(separator: ","))]"
  }

  static func object(_ members: [(name: String, value: String)]) -> String {
    "{\(members.map { "\(string($0.name)):\($0.value)" }.joined(separator: ","))}"
  }

  static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
