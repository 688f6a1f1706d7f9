/// An entry point of the library's own shaders.
struct BuiltInKernel {
  let name: String
  /// Indices of its bool function constants. Bit n of a variant is the value
  /// of the n-th.
  let constants: [UInt32]

  /// Every entry point, in the order of their pipeline slots.
  static let all: [BuiltInKernel] = KernelFamily.all.flatMap { family in
    family.kernels.map { BuiltInKernel(name: $0, constants: family.constants) }
  }
}

/// A variant of a built-in kernel, as a place in an array: the hot path finds
/// its pipeline without hashing a name.
struct PipelineSlot {
  /// Room for the constants of any built-in kernel.
  static let variants = 32

  let index: Int

  /// - Parameters:
  ///   - kernel: index in `BuiltInKernel.all`.
  ///   - variant: the values of its constants, one a bit.
  init(kernel: Int, variant: Int) {
    index = kernel * Self.variants + variant
  }

  var kernel: BuiltInKernel { BuiltInKernel.all[index / Self.variants] }

  var constants: [FunctionConstant] {
    let variant = index % Self.variants
    return kernel.constants.enumerated().map { bit, index in
      FunctionConstant(index: index, bool: variant >> bit & 1 == 1)
    }
  }
}
