/// Swizzles that few sources use. The headers have them only where they are asked for: they would be half of what clang
/// reads of the language.
enum RareSwizzles {
  /// Makes the headers have them.
  static let macro = "SM_ALL_SWIZZLES"

  /// Of three and four components those that the headers always have, beside repetitions of one.
  private static let common: Set<String> = ["xyz", "yzw", "xyzw", "zyx", "wzyx", "yzx", "zxy"]

  /// Whether a source may need them: some member has such a name.
  static func areUsed(in list: TokenList) -> Bool {
    list.indices.contains { isRare(list.text($0)) && [".", "->"].contains(list.text($0 - 1)) }
  }

  static func isRare(_ name: String) -> Bool {
    guard 3...4 ~= name.utf8.count, let components = components(name) else { return false }
    return Set(components).count > 1 && !common.contains(components)
  }

  /// A swizzle as one of `xyzw`; nil for another name.
  private static func components(_ name: String) -> String? {
    if name.allSatisfy("xyzw".contains) { return name }
    let places: [Character: Character] = ["r": "x", "g": "y", "b": "z", "a": "w"]
    let components = name.compactMap { places[$0] }
    return components.count == name.count ? String(components) : nil
  }
}
