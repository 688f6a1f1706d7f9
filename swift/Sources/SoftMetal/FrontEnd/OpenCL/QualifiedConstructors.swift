/// Constructors of objects in a certain memory. Those of `thread` objects are all that C++ for OpenCL needs; objects in
/// other memory are never constructed, so that their constructors go.
///
/// In a constructor the object lies in any memory, as far as clang knows: `this`, and calls of functions of the class
/// or of its members, name the object in `thread` memory.
struct QualifiedConstructors {
  private let list: TokenList
  private let definition: ClassDefinition
  /// Functions of the class and of its bases.
  private let functions: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let definitions = ClassDefinition.all(list)
    for definition in definitions {
      let bases = definitions.filter { definition.bases.contains($0.name) }
      let functions = bases.reduce(definition.functions) { $0.union($1.functions) }
      let constructors = QualifiedConstructors(list: list, definition: definition, functions: functions)
      for constructor in MemberFunction.all(of: definition, list) where constructor.isConstructor {
        constructors.lower(constructor, &context)
      }
    }
  }

  private func lower(_ constructor: MemberFunction, _ context: inout LoweringContext) {
    if let space = constructor.space {
      guard list.text(space) == "thread" else {
        context.blank(constructor.tokens)
        return
      }
      context.blank(space..<space + 1)
    }
    let body = span(constructor.parameters.upperBound, constructor.tokens.upperBound)
    let names = Set(constructor.parameters.map { list.text($0) })
    let initialised = initialisedNames(body)
    for token in body where list.isIdentifier(token) && !isMember(token) && !initialised.contains(token) {
      let text = list.text(token)
      if text == "this" {
        context.edits.replace(list.tokens[token].range, with: object)
      } else if functions.contains(text), list.text(token + 1) == "(" || list.text(token + 1) == "<" {
        context.insert("\(object)->", before: token)
      } else if definition.dataMembers.contains(text), !names.contains(text), isCalled(token) {
        context.insert("\(object)->", before: token)
      }
    }
  }

  /// The tokens of the names in `: a(1), B<T>{2}`.
  private func initialisedNames(_ body: Range<Int>) -> Set<Int> {
    var names: Set<Int> = []
    var position = body.lowerBound
    while body.contains(position), [":", ","].contains(list.text(position)) {
      position += 1
      while body.contains(position), !["(", "{"].contains(list.text(position)) {
        names.insert(position)
        position += 1
      }
      position = list.after(position)
    }
    return names
  }

  private var object: String { "((thread \(definition.name) *)this)" }

  private func isMember(_ token: Int) -> Bool {
    [".", "->", "::"].contains(list.text(token - 1))
  }

  /// Whether a function of the member at `token` is called: `part.set(` or `parts[i].set(`.
  private func isCalled(_ token: Int) -> Bool {
    var position = token + 1
    while list.text(position) == "[" { position = list.after(position) }
    guard list.text(position) == "." else { return false }
    while list.text(position) == ".", list.isIdentifier(position + 1) {
      position += 2
      while list.text(position) == "[" { position = list.after(position) }
    }
    return list.text(position) == "(" || list.text(position) == "<"
  }
}
