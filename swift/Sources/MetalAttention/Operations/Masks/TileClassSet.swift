/// The tile classes that a device's masks have, each bound to the bytes of its
/// mask: written again, the mask leaves them stale. Guarded by the lock of
/// `HandleSpace`. The order is that of encoding.
///
/// What a recorded pass makes counts in that recording alone, which notes
/// nothing of what others have: its runs do.
final class TileClassSet {
  struct Entry {
    fileprivate let classes: Access
    /// Nil once its buffer is released: classes that no mask has any more.
    fileprivate var mask: Access?
    fileprivate let geometry: MaskGeometry
    /// Number of the pass that makes them.
    fileprivate let pass: UInt64
    fileprivate let isRecorded: Bool
    /// The same in the order of commits.
    fileprivate let made: MadeTileClasses
    fileprivate var isStale = false

    /// Whether it counts for what is encoded into `pass`; nil stands for the host.
    @inline(__always)
    fileprivate func counts(in pass: Pass?) -> Bool {
      pass?.recording == nil ? !isRecorded : isRecorded && self.pass == pass?.number
    }
  }

  /// Read with each write that is encoded, so without a run-time check of
  /// exclusive access; the lock sees to that.
  @exclusivity(unchecked)
  private(set) var entries = ContiguousArray<Entry>()
  private(set) var commits = TileClassCommits()

  /// Notes classes that a dispatch makes, in place of what their bytes held.
  func add(_ classes: Access, of mask: Access, _ geometry: MaskGeometry, in pass: Pass) {
    entries.removeAll { $0.counts(in: pass) && $0.classes.overlaps(classes) }
    let made = commits.add(classes, of: mask, in: pass)
    entries.append(
      Entry(
        classes: classes, mask: mask, geometry: geometry, pass: pass.number, isRecorded: pass.recording != nil,
        made: made))
  }

  /// Notes bytes that the host writes.
  func noteHostWrite(_ access: Access) {
    noteWrite(access, in: nil)
    commits.noteHostWrite(access)
  }

  /// Notes that a pass was sent to the device.
  func noteCommit(_ pass: Pass) {
    commits.noteCommit(pass)
  }

  /// Notes bytes that a dispatch of `pass` writes, or the host where it is nil.
  @inline(__always)
  func noteWrite(_ access: Access, in pass: Pass?) {
    if !entries.isEmpty { markStale(access, in: pass) }
  }

  @inline(never)
  private func markStale(_ access: Access, in pass: Pass?) {
    for index in entries.indices where entries[index].counts(in: pass) {
      let isOfMask = entries[index].mask?.overlaps(access) ?? false
      if isOfMask || entries[index].classes.overlaps(access) { entries[index].isStale = true }
    }
  }

  /// What is noted at a time.
  struct Notes {
    fileprivate let entries: ContiguousArray<Entry>
    fileprivate let commits: TileClassCommits
  }

  var notes: Notes { Notes(entries: entries, commits: commits) }

  /// Takes back what was noted since.
  func restore(_ notes: Notes) {
    (entries, commits) = (notes.entries, notes.commits)
  }

  /// Notes that a pass has ended without having run.
  func noteAbandoned(_ pass: Pass) {
    if pass.recording != nil { entries.removeAll { $0.counts(in: pass) } }
    for index in entries.indices where entries[index].pass == pass.number {
      entries[index].isStale = true
    }
    commits.noteAbandoned(pass)
  }

  /// Drops what a released buffer held, since its handle may come again. The
  /// classes of a mask that is gone stay known, and serve no other.
  func forget(_ buffer: UInt32) {
    entries.removeAll { $0.classes.buffer == buffer }
    for index in entries.indices where entries[index].mask?.buffer == buffer {
      entries[index].mask = nil
    }
    commits.forget(buffer)
  }

  /// Checks that classes are those of a mask as it is now, and gives them. Nil
  /// for classes that the library did not make: they are the caller's own.
  func requireFresh(
    _ classes: Access, of mask: Access, _ geometry: MaskGeometry, in pass: Pass
  ) throws(StatusError) -> MadeTileClasses? {
    guard let entry = entries.last(where: { $0.counts(in: pass) && $0.classes.overlaps(classes) }) else { return nil }
    guard let made = entry.mask else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(TensorName.tileClasses): made from another mask than the one given, whose buffer is released; classify this mask"
      )
    }
    try require(
      made.buffer == mask.buffer && made.start == mask.start && made.end == mask.end, StatusCode.invalidArgument,
      "\(TensorName.tileClasses): made from another mask than the one given (bytes \(made.start) to \(made.end) of buffer \(made.buffer), not \(mask.start) to \(mask.end) of buffer \(mask.buffer)); classify this mask"
    )
    try require(
      entry.geometry == geometry, StatusCode.invalidArgument,
      "\(TensorName.tileClasses): made for another mask over the same bytes, \(entry.geometry.description), not \(geometry.description); classify the mask as it is given here"
    )
    try require(
      !entry.isStale && !entry.made.isOverwritten && !entry.made.isLost, StatusCode.invalidArgument,
      "\(TensorName.tileClasses): stale; after they were classified the mask or the classes were written, or their pass failed or was never committed; classify the mask again"
    )
    return entry.made
  }
}
