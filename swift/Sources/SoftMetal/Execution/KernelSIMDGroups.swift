import CSoftMetal

/// What the threadgroups of a kernel's dispatches have to be.
enum KernelSIMDGroups: Int {
  case any
  /// Of whole SIMD groups, for simdgroup matrices.
  case whole
  /// Rows of whole SIMD groups, as `MTLCompileOptions.needsRowsOfSIMDGroups` says.
  case rows

  /// Why a threadgroup of this size cannot be; nil where it can.
  func refusal(width: Int, height: Int, depth: Int) -> String? {
    let lanes = Int(SM_SIMD_WIDTH)
    return switch self {
    case .whole where width * height * depth % lanes != 0:
      "uses simdgroup matrices, which need whole SIMD groups of \(lanes) threads"
    case .rows where width % lanes != 0:
      "is compiled for rows of whole SIMD groups, of \(lanes) threads each"
    default: nil
    }
  }
}
