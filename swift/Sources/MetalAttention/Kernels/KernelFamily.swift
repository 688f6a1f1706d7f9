/// A family of kernels in one table, from which names, pipeline slots and
/// messages are derived.
struct KernelFamily {
  /// The shader files with the entry points of each.
  let sources: [(file: String, kernels: [String])]
  /// A variant has the values of these, the first in its lowest bits.
  var constants: [KernelConstant] = []
  /// Constants that some kernels have besides, in the bits behind those.
  var furtherConstants: [String: [KernelConstant]] = [:]
  /// Element types and head sizes with specialised kernels; empty if unrestricted.
  var dtypes: [DType] = []
  var headDims: [UInt32] = []
  /// Files whose kernels are dispatched in rows of whole SIMD groups alone.
  var filesOfSIMDGroups: Set<String> = []

  /// Every family, in the order of their pipeline slots.
  static let all = [
    CopyKernel.family, FlashAttnKernel.family, FlashAttnDecodeKeys.family, DecodeKernel.family, MergeAttention.family,
    MaskKernel.family, HadamardKernel.family, RopeKernel.family, AppendKernel.family, Copy.family,
  ]

  /// The entry points of all sources.
  var kernels: [String] { sources.flatMap(\.kernels) }

  /// For messages: `64, 80, 96`.
  var headDimList: String { headDims.map { "\($0)" }.joined(separator: ", ") }

  /// For messages: `bf16, f16 or bool`.
  var dtypeList: String {
    guard let last = dtypes.last, dtypes.count > 1 else { return dtypes.map { "\($0)" }.joined() }
    return dtypes.dropLast().map { "\($0)" }.joined(separator: ", ") + " or \(last)"
  }
}
