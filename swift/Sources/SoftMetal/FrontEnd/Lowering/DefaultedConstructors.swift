/// Removes `S() threadgroup = default;`: the default constructor of thread
/// objects, which every struct keeps, does for objects in any memory.
enum DefaultedConstructors {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where AddressSpace.qualified.contains(list.text(token)) {
      guard list.text(token - 1) == ")", list.text(token + 1) == "=", list.text(token + 2) == "default" else {
        continue
      }
      var start = token
      while start > 0, ![";", "{", "}", ":"].contains(list.text(start - 1)) { start -= 1 }
      context.blank(start..<token + 4)
    }
  }
}
