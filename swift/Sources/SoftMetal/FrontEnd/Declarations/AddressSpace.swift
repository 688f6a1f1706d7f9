/// The words of Metal's address spaces.
enum AddressSpace {
  /// Those that clang has a qualifier for: all but thread memory.
  static let qualified: Set<String> = ["device", "constant", "threadgroup"]
  static let all = qualified.union(["thread"])
}
