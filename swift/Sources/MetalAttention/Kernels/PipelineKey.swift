/// The key under which a pipeline is cached.
struct PipelineKey: Hashable {
  let kernel: String
  /// Selects the built-in kernel where the caller registered one of the same name.
  private(set) var isBuiltIn: Bool
  /// In the order of their indices, then of their names, each once.
  let constants: [FunctionConstant]

  /// The key of the built-in kernel of the same name.
  var builtIn: PipelineKey {
    var key = self
    key.isBuiltIn = true
    return key
  }

  init(kernel: String, isBuiltIn: Bool = false, constants: [FunctionConstant]) throws(StatusError) {
    self.kernel = kernel
    self.isBuiltIn = isBuiltIn
    self.constants = constants.sorted { $0.place < $1.place }
    for (left, right) in zip(self.constants, self.constants.dropFirst()) where left.place == right.place {
      throw StatusError(StatusCode.invalidArgument, "\(arg: "constants"): \(left.place) is given twice")
    }
  }
}
