/// Sets of features that GPUs share.
public enum MTLGPUFamily: Int, Sendable {
  /// M1: the first with SIMD-group matrices.
  case apple7 = 1007
  /// M2.
  case apple8 = 1008
  /// M3 and M4: hardware bfloat.
  case apple9 = 1009
  case metal3 = 5001
}
