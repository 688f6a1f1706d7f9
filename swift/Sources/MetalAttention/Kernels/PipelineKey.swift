/// What a pipeline is cached by.
struct PipelineKey: Hashable {
  let kernel: String
  /// In the order of their indices, each index once.
  let constants: [FunctionConstant]

  init(kernel: String, constants: [FunctionConstant]) throws(StatusError) {
    self.kernel = kernel
    self.constants = constants.sorted { $0.index < $1.index }
    for (left, right) in zip(self.constants, self.constants.dropFirst()) where left.index == right.index {
      throw StatusError(StatusCode.invalidArgument, "\(arg: "constants"): index \(left.index) is given twice")
    }
  }
}
