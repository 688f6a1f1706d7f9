/// How the caller names the arguments of the C functions, as told by
/// `ma_name_arguments`. Used in messages only.
enum ArgumentNames {
  private struct Key: Hashable {
    let function: String
    let argument: String
  }

  /// The name when a call has K alone, and when it has K and V.
  private struct Names {
    let alone: String
    let withV: String
  }

  private static let lock = Lock()
  nonisolated(unsafe) private static var names: [Key: Names] = [:]

  /// Takes lines `function argument name [nameWithV]`; all of them or none.
  static func add(_ text: String) throws(StatusError) {
    var added: [Key: Names] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 3 || words.count == 4 else {
        throw StatusError(
          StatusCode.invalidArgument,
          "\(arg: "names"): \"\(line)\" has \(words.count) words; a line has a function, an argument and 1 or 2 names")
      }
      added[Key(function: words[0], argument: words[1])] = Names(alone: words[2], withV: words[words.count - 1])
    }
    lock.withLock { names.merge(added) { _, new in new } }
  }

  /// The caller's name of an argument, if it is not the C name.
  static func name(_ argument: String, of function: String, withV: Bool) -> String? {
    lock.withLock {
      names[Key(function: function, argument: argument)].map { withV ? $0.withV : $0.alone }
    }
  }
}
