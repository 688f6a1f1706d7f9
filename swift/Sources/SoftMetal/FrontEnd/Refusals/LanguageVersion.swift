/// Refuses what a version of the language has not yet.
enum LanguageVersion {
  /// - Parameter version: 310 for version 3.1, which has all.
  static func check(_ version: Int, _ context: inout LoweringContext) {
    guard version < 310 else { return }
    let list = context.list
    for token in list.indices where bfloats.contains(list.text(token)) {
      // A member, or of another namespace.
      if [".", "->"].contains(list.text(token - 1)) { continue }
      if list.text(token - 1) == "::", list.text(token - 2) != "metal" { continue }
      context.report(
        "'\(list.text(token))' is of version 3.1 of the language; this source is compiled as "
          + "\(version / 100).\(version % 100 / 10)", at: token)
    }
  }

  private static let bfloats = Set(
    ["bfloat", "packed_bfloat"].flatMap { name in [name] + (2...4).map { "\(name)\($0)" } })
}
