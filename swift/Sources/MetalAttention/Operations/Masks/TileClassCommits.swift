/// Tile classes that a dispatch makes, as the device sees them: in the order of
/// commits, which need not be that of encoding.
final class MadeTileClasses {
  fileprivate let classes: Access
  fileprivate let mask: Access
  /// Number of the pass that makes them.
  fileprivate let pass: UInt64
  /// Number of accesses of that pass up to and including the dispatch.
  fileprivate let accessEnd: Int
  fileprivate var isCommitted = false
  /// Nil once the outcome of their pass is known.
  fileprivate var running: (any MTLCommandBuffer)?
  private var hasFailed = false
  /// Whether a committed pass or the host has written the mask or the classes since.
  fileprivate(set) var isOverwritten = false

  fileprivate init(_ classes: Access, of mask: Access, in pass: Pass) {
    self.classes = classes
    self.mask = mask
    self.pass = pass.number
    accessEnd = pass.accesses.count
  }

  /// Whether the pass that makes them has failed, so that they may not have been made.
  var isLost: Bool {
    if let status = running?.status, status == .completed || status == .error {
      hasFailed = status == .error
      running = nil
    }
    return hasFailed
  }

  fileprivate func overlaps(_ access: Access) -> Bool {
    mask.overlaps(access) || classes.overlaps(access)
  }
}

/// The tile classes that later commits can still invalidate.
struct TileClassCommits {
  private var made: [MadeTileClasses] = []

  /// Notes classes that the last dispatch of a pass makes.
  mutating func add(_ classes: Access, of mask: Access, in pass: Pass) -> MadeTileClasses {
    let classes = MadeTileClasses(classes, of: mask, in: pass)
    made.append(classes)
    return classes
  }

  /// Checks that what a pass reads is made before it, and of the mask that it sees.
  func requireMade(for pass: Pass) throws(StatusError) {
    for classes in pass.usedTileClasses where classes.pass != pass.number {
      try require(
        classes.isCommitted, StatusCode.invalidState,
        "the pass reads tile classes of a pass that is not committed; commit that one first")
      try require(
        !classes.isOverwritten && !classes.isLost, StatusCode.invalidState,
        "the pass reads tile classes that are stale; after they were made, and before this commit, the mask or the classes were written, or their pass failed; classify the mask again and encode a new pass"
      )
    }
  }

  /// Notes that a pass was sent to the device.
  mutating func noteCommit(_ pass: Pass) {
    if made.isEmpty { return }
    let accesses = pass.accesses
    for classes in made {
      let isOwn = classes.pass == pass.number
      if isOwn {
        classes.isCommitted = true
        classes.running = pass.commandBuffer
      } else if !classes.isCommitted || classes.isLost {
        continue
      }
      let later = accesses[(isOwn ? classes.accessEnd : 0)...]
      if later.contains(where: { $0.isWrite && classes.overlaps($0) }) { classes.isOverwritten = true }
    }
    made.removeAll { $0.isOverwritten || $0.isLost }
  }

  /// Notes bytes that the host writes. What is not committed yet will be made of them.
  mutating func noteHostWrite(_ access: Access) {
    for classes in made where classes.isCommitted && classes.overlaps(access) { classes.isOverwritten = true }
    made.removeAll(where: \.isOverwritten)
  }

  mutating func noteAbandoned(_ pass: Pass) {
    made.removeAll { $0.pass == pass.number }
  }

  /// Drops the classes in a released buffer, which nothing that is encoded from now on writes.
  mutating func forget(_ buffer: UInt32) {
    made.removeAll { $0.classes.buffer == buffer }
  }
}
