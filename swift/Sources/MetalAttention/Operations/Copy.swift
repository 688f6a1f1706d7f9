import CMetalAttention

/// `ma_copy`: bytes from one place to another, of a buffer or of two.
///
/// A kernel and no blit: a blit would end the pass's compute encoder, and with it what overlaps.
enum Copy {
  /// Bytes of what a thread moves at once, the most first.
  private static let units: [UInt64] = [8, 4, 2, 1]
  private static let threadsPerThreadgroup: UInt32 = 256
  /// Units of a row of the grid, whose positions have 32 bits. A multiple of 128.
  private static let longestRow: UInt64 = 1 << 30

  static let family = KernelFamily(
    sources: [("copy.metal", table.names)])

  private static let table = KernelTable(units.count) { place in "copy_\(units[place[0]])" }
  /// In `BuiltInKernel.all`, in the order of `units`.
  private static let kernels = units.indices.compactMap { table.indices[$0] }

  static func encode(_ args: MACopyArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    let from = try Tensor(args.from, .from, in: pass)
    let to = try Tensor(args.to, .to, in: pass)
    try require(
      from.dtype == to.dtype, StatusCode.unsupported,
      "\(from.name) is \(from.dtype), \(to.name) is \(to.dtype); a copy keeps the dtype")
    try require(
      from.length == to.length, StatusCode.invalidArgument,
      "\(from.name) has \(from.length) bytes, \(to.name) has \(to.length); a copy takes as many as it gives")
    let (read, written) = (from.whole(isWrite: false), to.whole(isWrite: true))
    try written.requireApart(to.name, from: read, from.name)
    if from.length == 0 { return nil }

    let place = units.firstIndex { (from.offset | to.offset | from.length) % $0 == 0 } ?? units.count - 1
    let slot = PipelineSlot(kernel: kernels[place], variant: 0)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }

    let count = from.length / units[place]
    let row = min(count, longestRow)
    let encoder = pass.use(pipeline)
    encoder.bind(from.buffer, offset: from.offset, at: 0)
    encoder.bind(to.buffer, offset: to.offset, at: 1)
    encoder.bind(CopyParams(units: Int64(count), row: UInt32(row), _pad: 0), at: 2)
    encoder.note(read)
    encoder.note(written)
    // 32 threads move 128 units.
    let columns = UInt32((row + 127) / 128 * 32)
    let grid = GridSize(columns, UInt32((count + row - 1) / row), 1)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.copy, .threads, grid: grid, threads: threads)
    return nil
  }
}
