import MetalAttention

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The files that a shader file includes by `#include "PATH"`, from its own folder on, directly or not.
struct IncludedFiles {
  /// By the name under which the library looks for each.
  private(set) var texts: [(name: String, text: String)] = []

  /// - Parameters:
  ///   - text: of the file.
  ///   - name: its path, which is its name for the library.
  init(in text: String, name: String) throws {
    var open = [(name: name, text: text)]
    var known: Set<String> = [name]
    while let file = open.popLast() {
      for path in ShaderInclude.paths(in: file.text, name: file.name) where known.insert(path).inserted {
        // What is not there may be a header of the library's, or the language's; if not, the compiler says so.
        guard let text = try ShaderFile.text(path) else { continue }
        open.append((path, text))
        texts.append((path, text))
      }
    }
  }
}
