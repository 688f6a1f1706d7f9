/// Lets vectors be initialised in parentheses as Metal has it: `float4 v(a, 1)`
/// and the member of `S() : v(a, 1) {}` become `v(sm_make<float4>(a, 1))`.
struct Initialisers {
  private let list: TokenList
  private let types: Set<String>
  private let names: DeclaredNames

  static func lower(_ context: inout LoweringContext) {
    let initialisers = Initialisers(context)
    let list = context.list
    for (name, type) in initialisers.names.parenthesised where initialisers.isVariable(name) {
      initialisers.lower(name, type: list.joined(type), &context)
    }
    for token in list.indices where initialisers.isMemberInitialiser(token) {
      initialisers.lower(token, type: "sm_bare<decltype(\(list.text(token)))>", &context)
    }
  }

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    let vectors = VectorTypes(list)
    let parameters = TemplateParameter.types(of: list)
    names = DeclaredNames(context) { vectors.contains(list.text($0)) || parameters.contains(list.text($0)) }
    types = parameters.union(VectorTypes.scalars).union(VectorTypes.builtIn).union(vectors.aliases)
  }

  private func arguments(_ token: Int) -> Range<Int> {
    span(token + 2, list.after(token + 1) - 1)
  }

  private func lower(_ token: Int, type: String, _ context: inout LoweringContext) {
    context.wrap(arguments(token), "sm_make<\(type)>(", ")")
    Comparisons.wrapArguments(arguments(token), list, &context.edits)
  }

  /// Whether the declared name at `token` is a variable, and not a function with parameters.
  private func isVariable(_ token: Int) -> Bool {
    guard [";", ","].contains(list.text(list.after(token + 1))), !arguments(token).isEmpty else { return false }
    return !list.splitAtCommas(arguments(token)).contains(where: isParameter)
  }

  private func isParameter(_ range: Range<Int>) -> Bool {
    guard let first = range.first, let last = range.last else { return true }
    if range.count == 1 { return types.contains(list.text(first)) }
    return list.isIdentifier(first) && (list.isIdentifier(first + 1) || ["*", "&"].contains(list.text(last)))
  }

  /// Whether `name(...)` at `token` initialises a vector member in the head of a constructor.
  private func isMemberInitialiser(_ token: Int) -> Bool {
    guard list.text(token + 1) == "(", [":", ","].contains(list.text(token - 1)),
      ["{", ","].contains(list.text(list.after(token + 1))), !arguments(token).isEmpty,
      names.names(at: token).contains(where: { $0.levels == 0 })
    else { return false }
    // Back over other members to the parameters of the constructor.
    var position = token - 1
    while list.text(position) == ",", [")", "}"].contains(list.text(position - 1)), list.partner[position - 1] > 1 {
      position = list.partner[position - 1] - 2
    }
    return list.text(position) == ":" && list.text(position - 1) == ")"
  }
}
