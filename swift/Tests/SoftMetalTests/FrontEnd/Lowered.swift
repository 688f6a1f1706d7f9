@testable import SoftMetal

/// A source after lowering, cut into the user's text and what follows it.
struct Lowered {
  let names: [String]
  let body: String
  let tail: String

  init(_ source: String, label: String = "test.metal") throws {
    let text = SourceText(Array(source.utf8))
    let lowered = try Lowering.program(text, origin: SourceOrigin(label: label, source: text))
      .shader(kernel: nil, needingLanes: [])
    names = lowered.functionNames
    let all = String(decoding: lowered.text, as: UTF8.self)
    let lines = all.split(separator: "\n", omittingEmptySubsequences: false)
    let userLines = source.split(separator: "\n", omittingEmptySubsequences: false).count
    let start = (lines.firstIndex { $0.hasPrefix("#line 1 ") } ?? -1) + 1
    body = lines[start..<start + userLines].joined(separator: "\n")
    tail = lines[(start + userLines)...].joined(separator: "\n")
  }

  /// The log of a source that lowering refuses; empty when it does not.
  static func log(_ source: String) -> String {
    do {
      _ = try Lowered(source)
      return ""
    } catch {
      return String(describing: error)
    }
  }
}

extension String {
  func has(_ part: String) -> Bool {
    let bytes = Array(utf8)
    let pattern = Array(part.utf8)
    guard bytes.count >= pattern.count else { return false }
    return (0...bytes.count - pattern.count).contains { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
  }

  /// Runs of spaces as one.
  var squeezed: String {
    split(separator: " ").joined(separator: " ")
  }
}
