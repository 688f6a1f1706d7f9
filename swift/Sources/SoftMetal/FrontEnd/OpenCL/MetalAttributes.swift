/// Removes the attributes of the Metal Shading Language, which C++ lacks.
enum MetalAttributes {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    var position = 0
    while position < list.count {
      guard Attribute.isListStart(position, of: list) else {
        position += 1
        continue
      }
      let end = list.after(position)
      let attributes = Attribute.parseList(position, of: list)
      let isForeign = attributes.contains { !Attribute.standardNames.contains($0.name) }
      // Everything is inlined into the kernel.
      if isForeign || (position..<end).contains(where: { ["noinline", "optnone"].contains(list.text($0)) }) {
        context.blank(position..<end)
      }
      position = end
    }
  }
}
