/// Tells the headers which swizzles a source uses: each is a member of the
/// vectors that are classes, and all of them together would be some 400.
enum Swizzles {
  /// Definitions of `SM_SWIZZLES_2`, `_3` and `_4`, such as `S(zx, 2, 0)`, for vectors of so many components.
  static func definitions(_ context: LoweringContext) -> String {
    let words = Set(context.list.tokens.map(\.text))
    let swizzles = words.sorted().compactMap { word in components(word).map { (word, $0) } }
    return (2...4).map { width in
      let members = swizzles.filter { $0.1.allSatisfy { $0 < width } }.map { word, components in
        " S(\(word), \(components.map(String.init).joined(separator: ", ")))"
      }
      return "#define SM_SWIZZLES_\(width)(S)\(members.joined())\n"
    }.joined()
  }

  /// The components that `word` names, or nil when it is no swizzle.
  static func components(_ word: String) -> [Int]? {
    guard (2...4).contains(word.utf8.count) else { return nil }
    for names in ["xyzw", "rgba"] where word.allSatisfy(names.contains) {
      let letters = Array(names)
      return word.compactMap { letters.firstIndex(of: $0) }
    }
    return nil
  }
}
