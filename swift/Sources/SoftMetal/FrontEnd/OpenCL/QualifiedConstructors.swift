/// Constructors of objects in a certain memory. Those of `thread` objects are all that C++ for OpenCL needs; objects in
/// other memory are never constructed, so that their constructors go.
enum QualifiedConstructors {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for definition in ClassDefinition.all(list) {
      for constructor in MemberFunction.all(of: definition, list) where constructor.isConstructor {
        guard let space = constructor.space else { continue }
        if list.text(space) == "thread" {
          context.blank(space..<space + 1)
        } else {
          context.blank(constructor.tokens)
        }
      }
    }
  }
}
