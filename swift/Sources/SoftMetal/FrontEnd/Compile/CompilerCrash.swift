import Glibc

/// An end of clang's by a mistake of its own, of which it prints a dump that says little to the user, or at the limit of
/// its time.
struct CompilerCrash {
  private let clang: Clang
  /// How it ended, in words.
  private let end: String
  private let isOutOfTime: Bool
  private let output: String

  /// Nil where clang ended in order.
  init?(_ outcome: ChildProcess.Outcome, clang: Clang) {
    // What clang says of a part that a signal ended, and of one that gave up.
    let crashed: Int32 = 254
    let internalError: Int32 = 70
    // As a shell says it of a program.
    let firstSignal: Int32 = 128
    isOutOfTime = outcome.status == firstSignal + SIGXCPU
    switch outcome.status ?? 0 {
    case firstSignal + SIGXCPU: end = "took more than \(ChildProcess.Limits().seconds) s of processor time"
    case crashed: end = "crashed"
    case internalError: end = "broke off with an error of its own"
    case let status where status > firstSignal: end = "ended with signal \(status - firstSignal)"
    default: return nil
    }
    self.clang = clang
    output = outcome.output
  }

  func error(_ map: SourceMap, label: String, kernel: String?) -> ShaderCompilerError {
    let compiled = kernel.map { "kernel '\($0)'" } ?? "this source"
    let position = places.lazy.compactMap { map.position(file: $0.file, line: $0.line, column: $0.column) }.first
    let here = position == nil ? "" : "here "
    let advice =
      isOutOfTime
      ? "Macros, templates and constants \(here)may need less of it: some double it with each that is added"
      : "That is a mistake of the compiler's, or memory is short: compile again, write the text \(here)in another way, "
        + "or name another clang in SOFTMETAL_CLANG (clang \(Clang.testedVersion) is supported)"
    let message =
      "the compiler, \(clang.path), \(end) while it compiled \(compiled)"
      + "\(position == nil ? "" : ", after it had read up to here"). \(advice)"
    let log =
      position.map { DiagnosticText.format($0, kind: "error", message: message) } ?? "\(label): error: \(message)\n"
    // Without the pass it would take as long.
    return ShaderCompilerError(
      kind: isOutOfTime ? .compileFailure : .compilerCrash, message: log + DiagnosticText.count(1))
  }

  /// Where it was: the lines `1.<tab>file:line:column: what` of its dump.
  private var places: [(file: String, line: Int, column: Int)] {
    output.split(separator: "\n").compactMap { line in
      guard let tab = line.firstIndex(of: "\t"), line[..<tab].last == ".",
        line[..<tab].dropLast().allSatisfy(\.isNumber)
      else { return nil }
      let parts = line[line.index(after: tab)...].split(separator: ":", omittingEmptySubsequences: false)
      for index in parts.indices.dropFirst(2) {
        guard let column = Int(parts[index]), let number = Int(parts[index - 1]) else { continue }
        return (parts[..<(index - 1)].joined(separator: ":"), number, column)
      }
      return nil
    }
  }
}
