/// Swizzles of swizzles, `v.wzyx.xy`, as one, `v.wz`: those of a class give values, and these may be assigned to.
struct NestedSwizzles {
  private let list: TokenList
  /// Names of members that are no swizzles.
  private let members: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let members = ClassDefinition.all(list).reduce(into: Set<String>()) { $0.formUnion($1.dataMembers) }
    let swizzles = NestedSwizzles(list: list, members: members)
    var token = 0
    while token < list.count {
      guard list.text(token) == ".", var places = swizzles.places(token + 1), places.count > 1 else {
        token += 1
        continue
      }
      var end = token + 2
      while list.text(end) == ".", let next = swizzles.places(end + 1), next.allSatisfy({ $0 < places.count }) {
        places = next.map { places[$0] }
        end += 2
      }
      if end > token + 2 {
        let name = String(places.map { Self.letters[$0] })
        context.edits.replace(list.byteRange(token + 1..<end), with: name)
      }
      token = end
    }
  }

  private static let letters = Array("xyzw")
  private static let colours = Array("rgba")

  /// The components that a swizzle at `token` has, or nil.
  private func places(_ token: Int) -> [Int]? {
    let name = list.text(token)
    guard list.isIdentifier(token), name.count <= 4, !members.contains(name), list.text(token + 1) != "(" else {
      return nil
    }
    for letters in [Self.letters, Self.colours] {
      let places = name.compactMap { letters.firstIndex(of: $0) }
      if places.count == name.count { return places }
    }
    return nil
  }
}
