import CSoftMetal
import Glibc

/// An argument in `constant` memory whose bytes a kernel takes in its parameter, behind the `SmGpuDispatch`: the compiler
/// pass decides which (`CSoftMetal/lanes/ValueArguments.hpp`).
struct ValueArgument: Equatable {
  /// N of [[buffer(N)]].
  let index: Int
  /// Bytes from the parameter's beginning on.
  let offset: Int
  /// Bytes.
  let length: Int

  /// Bytes that a parameter has at most.
  static let parameterLength = 4096

  /// Those that PTX names, each once: entries of one kernel have the same.
  static func named(in ptx: UnsafePointer<CChar>) -> [ValueArgument] {
    var found: [ValueArgument] = []
    var rest = ptx
    while let place = strstr(rest, marker) {
      var end: UnsafeMutablePointer<CChar>? = place + strlen(marker)
      let numbers = (0..<3).map { _ in strtol(end ?? place, &end, 10) }
      let argument = ValueArgument(index: numbers[0], offset: numbers[1], length: numbers[2])
      if argument.isValid, !found.contains(argument) { found.append(argument) }
      rest = UnsafePointer(end ?? place + 1)
    }
    return found
  }
  private static let marker = "// sm_value "

  private var isValid: Bool {
    ArgumentTable.indices ~= index && offset >= MemoryLayout<SmGpuDispatch>.size && length > 0
      && length <= Self.parameterLength - offset
  }
}
