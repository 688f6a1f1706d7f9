/// Says where dispatches that may overlap need a barrier between them.
///
/// A dispatch conflicts when it reads what one since the last barrier wrote,
/// or writes what one since then read or wrote.
struct HazardTracker {
  private var reads = AccessSet()
  private var writes = AccessSet()

  /// Whether a dispatch needs a barrier before it; records it either way.
  mutating func admit(_ accesses: ArraySlice<Access>) -> Bool {
    let conflicts = accesses.contains { access in
      writes.overlaps(access) || (access.isWrite && reads.overlaps(access))
    }
    if conflicts {
      reads.removeAll()
      writes.removeAll()
    }
    for access in accesses {
      if access.isWrite {
        writes.insert(access)
      } else {
        reads.insert(access)
      }
    }
    return conflicts
  }
}
