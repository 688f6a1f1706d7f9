/// Threads or threadgroups along three dimensions.
struct GridSize {
  let x: UInt32
  let y: UInt32
  let z: UInt32

  @inline(__always)
  init(_ x: UInt32, _ y: UInt32, _ z: UInt32) {
    self.x = x
    self.y = y
    self.z = z
  }

  /// A threadgroup for this grid of threads: whole rows, as many as fit in `limit` threads.
  @inline(__always)
  func threadgroup(atMost limit: UInt32) -> GridSize {
    let width = min(x, limit)
    return GridSize(width, min(y, limit / width), 1)
  }

  @inline(__always)
  var metal: MTLSize { MTLSize(width: Int(x), height: Int(y), depth: Int(z)) }

  /// Up to 2^96, hence overflow-checked.
  var count: Count { Count(x) * y * z }
}

extension GridSize: CustomStringConvertible {
  var description: String { "\(x) x \(y) x \(z)" }
}
