/// The assembler's word, as `softmetal_executor` has it, that kernels compiled as loops need lanes.
struct LanesNeeded: Error {
  /// The kernels' numbers in the object.
  let numbers: Set<Int>

  init(numbers: Set<Int>) { self.numbers = numbers }

  /// Nil where a log of clang has no such word.
  init?(log: String) {
    let words = log.split { $0 == " " || $0 == "\n" }
    let places = words.indices.dropLast().filter { words[$0] == "sm_needs_lanes" }
    numbers = Set(places.compactMap { Int(words[$0 + 1]) })
    if numbers.isEmpty { return nil }
  }
}
