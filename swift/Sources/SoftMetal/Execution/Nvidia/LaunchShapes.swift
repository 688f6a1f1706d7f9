import CSoftMetal

/// The launches that make up a dispatch: CUDA has threadgroups of one size in each, fewer of them along y and z than
/// Metal, and fewer threads along z.
struct LaunchShapes {
  private static let maxThreadgroups: (UInt32, UInt32, UInt32) = (0x7FFF_FFFF, 0xFFFF, 0xFFFF)
  private static let maxDepth: UInt32 = 64

  /// A range of threadgroups along one axis, and the threads of each along it.
  private struct Run {
    let first: UInt32
    let count: UInt32
    let threads: UInt32
  }

  struct Launch {
    let first: (UInt32, UInt32, UInt32)
    let threadgroups: (UInt32, UInt32, UInt32)
    let threads: (UInt32, UInt32, UInt32)
    /// Whether the threads have to be launched in one row.
    var isFlat: Bool { threads.2 > LaunchShapes.maxDepth }
  }

  private let xs: [Run]
  private let ys: [Run]
  private let zs: [Run]

  init(_ dispatch: SmDispatch) {
    let (grid, threads, groups) = (dispatch.threadsPerGrid, dispatch.threadsPerThreadgroup, dispatch.threadgroups)
    xs = Self.runs(grid.0, threads.0, groups.0, Self.maxThreadgroups.0)
    ys = Self.runs(grid.1, threads.1, groups.1, Self.maxThreadgroups.1)
    zs = Self.runs(grid.2, threads.2, groups.2, Self.maxThreadgroups.2)
  }

  /// Made as they are asked for: there may be 2^32 of them.
  var launches: some Sequence<Launch> {
    let (xs, ys) = (xs, ys)
    return zs.lazy.flatMap { z in
      ys.lazy.flatMap { y in
        xs.lazy.map { x in
          Launch(
            first: (x.first, y.first, z.first), threadgroups: (x.count, y.count, z.count),
            threads: (x.threads, y.threads, z.threads))
        }
      }
    }
  }

  /// The whole threadgroups along an axis, in as many pieces as it takes, and the last, partial one.
  private static func runs(_ threads: UInt32, _ perThreadgroup: UInt32, _ groups: UInt32, _ limit: UInt32) -> [Run] {
    let rest = threads % perThreadgroup
    let whole = rest == 0 ? groups : groups - 1
    var runs: [Run] = []
    var first: UInt32 = 0
    while first < whole {
      let count = min(limit, whole - first)
      runs.append(Run(first: first, count: count, threads: perThreadgroup))
      first += count
    }
    if rest != 0 { runs.append(Run(first: whole, count: 1, threads: rest)) }
    return runs
  }
}
