/// The assembler's word, as `softmetal_threads` has it, that kernels compiled as loops need lanes.
struct LanesNeeded: Error {
  /// The kernels' numbers in the object.
  let numbers: Set<Int>

  init(numbers: Set<Int>) { self.numbers = numbers }

  /// Nil where a log of clang has no such word.
  init?(log: String) {
    let word = "<instantiation>:1:1: error: sm_needs_lanes "
    let lines = log.split(separator: "\n").filter { $0.hasPrefix(word) }
    numbers = Set(lines.compactMap { Int($0.dropFirst(word.count)) })
    if numbers.isEmpty { return nil }
  }
}
