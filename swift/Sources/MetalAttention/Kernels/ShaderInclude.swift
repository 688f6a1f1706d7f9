/// The one header that a shader may include besides Metal's own.
enum ShaderInclude {
  static let header = "ShaderTypes.h"

  /// The source with `#include "ShaderTypes.h"` replaced by that file's text,
  /// since a shader that is compiled from memory has no include path. `#line`
  /// keeps the compiler's messages at the caller's file and line.
  static func expand(_ source: String, name: String) -> String {
    let label = quote(name)
    var result = "#line 1 \(label)\n"
    var number = 0
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      number += 1
      if isInclude(line) {
        result += "#line 1 \"\(header)\"\n\(headerText)\n#line \(number + 1) \(label)\n"
      } else {
        result += line
        result += "\n"
      }
    }
    return result
  }

  /// The header without `#pragma once`, which has no meaning inside a file.
  private static let headerText: String = {
    let text = String(decoding: PackageResources.ShaderTypes_h, as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix("#pragma once") ? "" : String($0) }
      .joined(separator: "\n")
  }()

  private static func isInclude(_ line: Substring) -> Bool {
    let text = String(line.filter { $0 != " " && $0 != "\t" && $0 != "\r" })
    return text == "#include\"\(header)\"" || text.hasPrefix("#include\"\(header)\"//")
  }

  private static func quote(_ name: String) -> String {
    let escaped = name.flatMap { character -> [Character] in
      switch character {
      case "\"", "\\": ["\\", character]
      case "\n", "\r": [" "]
      default: [character]
      }
    }
    return "\"\(String(escaped))\""
  }
}
