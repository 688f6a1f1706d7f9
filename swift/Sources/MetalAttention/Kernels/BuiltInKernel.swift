/// A function constant of a built-in kernel: a bool, or a small number.
struct KernelConstant: ExpressibleByIntegerLiteral {
  let index: UInt32
  /// Bits of a variant that its values take; 1 for a bool.
  var bits = 1

  init(integerLiteral index: UInt32) {
    self.index = index
  }

  private init(index: UInt32, bits: Int) {
    self.index = index
    self.bits = bits
  }

  /// A `uint` below 2^bits.
  static func number(_ index: UInt32, bits: Int) -> KernelConstant { KernelConstant(index: index, bits: bits) }
}

/// An entry point of the library's own shaders.
struct BuiltInKernel {
  let name: String
  /// A variant has their values, the first in its lowest bits.
  let constants: [KernelConstant]

  /// Every entry point, in the order of their pipeline slots.
  static let all: [BuiltInKernel] = KernelFamily.all.flatMap { family in
    family.kernels.map { name in
      BuiltInKernel(name: name, constants: family.constants + (family.furtherConstants[name] ?? []))
    }
  }
}

/// A variant of a built-in kernel, as a place in an array: the hot path finds
/// its pipeline without hashing a name.
struct PipelineSlot {
  /// Of each kernel the slot of its variant 0, and last the number of all slots.
  private static let starts: ContiguousArray<Int> = BuiltInKernel.all.reduce(into: [0]) { starts, kernel in
    starts.append((starts.last ?? 0) + 1 << kernel.constants.reduce(0) { $0 + $1.bits })
  }

  /// Slots of all kernels.
  static var count: Int { starts.last ?? 0 }

  /// In `BuiltInKernel.all`.
  private let kernelIndex: Int
  private let variant: Int

  /// - Parameters:
  ///   - kernel: index in `BuiltInKernel.all`.
  ///   - variant: the values of its constants.
  init(kernel: Int, variant: Int) {
    kernelIndex = kernel
    self.variant = variant
  }

  @inline(__always)
  var index: Int { Self.starts[kernelIndex] + variant }

  var kernel: BuiltInKernel { BuiltInKernel.all[kernelIndex] }

  var constants: [FunctionConstant] {
    var rest = variant
    return kernel.constants.map { constant in
      defer { rest >>= constant.bits }
      let value = rest & (1 << constant.bits - 1)
      return constant.bits == 1
        ? FunctionConstant(index: constant.index, bool: value == 1)
        : FunctionConstant(index: constant.index, number: UInt32(value))
    }
  }
}
