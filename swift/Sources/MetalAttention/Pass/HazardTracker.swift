/// Says where dispatches that may overlap need a barrier between them.
///
/// A dispatch conflicts with one since the last barrier if it reads what that
/// one wrote, or writes what that one read or wrote.
struct HazardTracker {
  private var reads = AccessSet()
  private var writes = AccessSet()

  /// Whether the dispatch whose accesses begin at `start` needs a barrier
  /// before it; records it either way.
  mutating func admit(_ accesses: ContiguousArray<Access>, from start: Int) -> Bool {
    var conflicts = false
    for index in start..<accesses.count where !conflicts {
      let access = accesses[index]
      conflicts = writes.overlaps(access) || (access.isWrite && reads.overlaps(access))
    }
    if conflicts { removeAll() }
    for index in start..<accesses.count {
      let access = accesses[index]
      if access.isWrite {
        writes.insert(access)
      } else {
        reads.insert(access)
      }
    }
    return conflicts
  }

  /// Forgets all dispatches, and keeps the memory.
  mutating func removeAll() {
    reads.removeAll()
    writes.removeAll()
  }
}
