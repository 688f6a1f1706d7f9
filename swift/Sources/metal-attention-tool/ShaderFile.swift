import ArgumentParser

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

enum ShaderFile {
  /// The text of a file; nil where there is none.
  static func text(_ path: String) throws -> String? {
    guard let contents = FileManager.default.contents(atPath: path) else { return nil }
    guard let text = String(bytes: contents, encoding: .utf8), !text.utf8.contains(0) else {
      throw ValidationError("\(path) is no UTF-8 text")
    }
    return text
  }
}
