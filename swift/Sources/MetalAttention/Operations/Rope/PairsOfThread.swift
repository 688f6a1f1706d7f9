/// How many neighbouring pairs a thread takes of each head vector.
enum PairsOfThread {
  /// Whether two: elements of bf16, whose words two shifts decode, and of f32, where the lanes of a SIMD group then read
  /// one run of a head vector. Pairs of neighbours lie in one word as they are, and halves load as well one by one.
  @inline(__always)
  static func areTwo(
    headDim: UInt32, _ rope: RopeTable?, _ from: Tensor, _ to: Tensor, and second: (from: Tensor, to: Tensor)?
  ) -> Bool {
    if let rope, rope.isInterleaved || rope.hasRest { return false }
    guard from.dtype == to.dtype, from.dtype != .f16, headDim % (4 * Device.simdWidth) == 0 else { return false }
    return isAtPair(from) && isAtPair(to) && second.map { isAtPair($0.from) && isAtPair($0.to) } ?? true
  }

  /// Whether it begins at a multiple of two elements. A second stream has the dtypes of the first.
  @inline(__always)
  private static func isAtPair(_ tensor: Tensor) -> Bool { tensor.offset % UInt64(2 * tensor.dtype.size) == 0 }
}
