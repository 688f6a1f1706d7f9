import ArgumentParser
import CMetalAttention

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Prints the memory layout of every struct of the ABI and of the shaders.
struct LayoutCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "layout",
    abstract: "Print size, alignment and field offsets of every ABI and shader struct.",
    discussion: """
      The numbers are measured by the compiled library, so they are what a packer in another language has to match. \
      Offsets and sizes are in bytes.

      EXAMPLE: metal-attention-tool layout --json > layout.json
      """)

  @Flag(help: "Print JSON: {\"abiVersion\", \"structs\": [{\"name\", \"size\", \"alignment\", \"fields\"}]}.")
  var json = false

  func run() throws {
    let text = try libraryText { ma_layout_json($0, $1, $2) }
    if json {
      print(text)
      return
    }
    let layout = try JSONDecoder().decode(Layout.self, from: Data(text.utf8))
    print("ABI version \(layout.abiVersion)")
    for structure in layout.structs {
      print("\n\(structure.name): \(structure.size) bytes, alignment \(structure.alignment)")
      print("  offset   size  type        field")
      for field in structure.fields {
        let type = field.count > 1 ? "\(field.type)[\(field.count)]" : field.type
        print("  \(field.offset.padded(to: 6)) \(field.size.padded(to: 6))  \(type.padded(to: 11)) \(field.name)")
      }
    }
  }
}
