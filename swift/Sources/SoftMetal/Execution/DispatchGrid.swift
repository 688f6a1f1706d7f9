import CSoftMetal

/// The shape of a dispatch, within the limits of the device.
struct DispatchGrid {
  typealias Extent = (UInt32, UInt32, UInt32)

  let threadgroups: Extent
  let threadsPerThreadgroup: Extent
  /// Bounds of the last, partial threadgroups.
  let threadsPerGrid: Extent

  /// Whole threadgroups.
  init(threadgroups: MTLSize, threadsPerThreadgroup: MTLSize) throws(MTLCommandBufferError) {
    try Self.check(threadsPerThreadgroup)
    self.threadgroups = try Self.extent(threadgroups, "threadgroupsPerGrid")
    self.threadsPerThreadgroup = try Self.extent(threadsPerThreadgroup, "threadsPerThreadgroup")
    // No overflow: 32 bits times at most 1024.
    let threads = MTLSize(
      width: threadgroups.width * threadsPerThreadgroup.width,
      height: threadgroups.height * threadsPerThreadgroup.height,
      depth: threadgroups.depth * threadsPerThreadgroup.depth)
    threadsPerGrid = try Self.extent(threads, "threadgroupsPerGrid times threadsPerThreadgroup")
    try checkTotal()
  }

  /// An exact number of threads.
  init(threads: MTLSize, threadsPerThreadgroup: MTLSize) throws(MTLCommandBufferError) {
    try Self.check(threadsPerThreadgroup)
    threadsPerGrid = try Self.extent(threads, "threadsPerGrid")
    self.threadsPerThreadgroup = try Self.extent(threadsPerThreadgroup, "threadsPerThreadgroup")
    let threadgroups = MTLSize(
      width: (threads.width + threadsPerThreadgroup.width - 1) / threadsPerThreadgroup.width,
      height: (threads.height + threadsPerThreadgroup.height - 1) / threadsPerThreadgroup.height,
      depth: (threads.depth + threadsPerThreadgroup.depth - 1) / threadsPerThreadgroup.depth)
    self.threadgroups = try Self.extent(threadgroups, "threadgroupsPerGrid")
    try checkTotal()
  }

  /// Checks the limits of a kernel.
  func check(for pipeline: SoftComputePipelineState) throws(MTLCommandBufferError) {
    let (width, height, depth) = threadsPerThreadgroup
    let threads = Int(width) * Int(height) * Int(depth)
    guard threads <= pipeline.maxTotalThreadsPerThreadgroup else {
      throw MTLCommandBufferError(
        .internal,
        "kernel '\(pipeline.name)': threadsPerThreadgroup is \(width) x \(height) x \(depth) = \(threads) threads; "
          + "the kernel allows \(pipeline.maxTotalThreadsPerThreadgroup)")
    }
    try checkSimdgroups(pipeline)
  }

  /// Checks every size that a threadgroup has, those of partial ones too.
  private func checkSimdgroups(_ pipeline: SoftComputePipelineState) throws(MTLCommandBufferError) {
    // Most kernels take any, most other dispatches are of rows: these make no lists of sizes.
    guard pipeline.simdgroups != .any, !isOfRows else { return }
    for width in Self.sizes(threadsPerGrid.0, threadsPerThreadgroup.0) {
      for height in Self.sizes(threadsPerGrid.1, threadsPerThreadgroup.1) {
        for depth in Self.sizes(threadsPerGrid.2, threadsPerThreadgroup.2) {
          guard let refusal = pipeline.simdgroups.refusal(width: width, height: height, depth: depth) else { continue }
          throw MTLCommandBufferError(
            .internal,
            "kernel '\(pipeline.name)' \(refusal); the grid has a threadgroup of \(width) x \(height) x \(depth) threads"
          )
        }
      }
    }
  }

  /// Whether all threadgroups are rows of whole SIMD groups.
  private var isOfRows: Bool {
    let lanes = UInt32(SM_SIMD_WIDTH)
    return threadsPerThreadgroup.0 % lanes == 0 && threadsPerGrid.0 % lanes == 0
  }

  /// The sizes of the threadgroups along one dimension: the whole ones, the
  /// last one.
  private static func sizes(_ threads: UInt32, _ perThreadgroup: UInt32) -> [Int] {
    let last = threads % perThreadgroup
    guard last != 0 else { return [Int(perThreadgroup)] }
    return threads < perThreadgroup ? [Int(last)] : [Int(perThreadgroup), Int(last)]
  }

  private static func check(_ threadsPerThreadgroup: MTLSize) throws(MTLCommandBufferError) {
    let limit = 1...Int(SM_MAX_THREADS)
    let size = threadsPerThreadgroup
    guard limit ~= size.width, limit ~= size.height, limit ~= size.depth else {
      throw MTLCommandBufferError(
        .internal,
        "threadsPerThreadgroup is \(size.width) x \(size.height) x \(size.depth); "
          + "each dimension must be from 1 to \(SM_MAX_THREADS)")
    }
  }

  private static func extent(_ size: MTLSize, _ name: StaticString) throws(MTLCommandBufferError) -> Extent {
    let limit = 1...Int(UInt32.max)
    guard limit ~= size.width, limit ~= size.height, limit ~= size.depth else {
      throw MTLCommandBufferError(
        .internal,
        "\(name) is \(size.width) x \(size.height) x \(size.depth); "
          + "each dimension must be from 1 to \(UInt32.max)")
    }
    return (UInt32(size.width), UInt32(size.height), UInt32(size.depth))
  }

  private func checkTotal() throws(MTLCommandBufferError) {
    let (width, height, depth) = threadgroups
    let plane = UInt64(width) * UInt64(height)
    guard !plane.multipliedReportingOverflow(by: UInt64(depth)).overflow else {
      throw MTLCommandBufferError(
        .internal, "the grid has \(width) x \(height) x \(depth) threadgroups; the limit is \(UInt64.max)")
    }
  }
}
