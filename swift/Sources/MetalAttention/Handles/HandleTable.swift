/// Objects of one kind by 32-bit handle: kind (2 bits), generation (12 bits,
/// never 0), slot (18 bits). Callers hold the lock of `HandleSpace`.
///
/// A freed slot raises its generation, which makes its old handles stale. A
/// generation wraps around after 4,095 uses of its slot; slots are therefore
/// reused oldest first and only while `spareSlots` others are free.
final class HandleTable<Object: AnyObject> {
  private struct Slot {
    /// Owned by the slot; unmanaged, so that a look-up need not count it.
    var object: Unmanaged<Object>?
    var generation: UInt32
    /// The slot freed after this one.
    var nextFree: Int
  }

  static var slotBits: UInt32 { 18 }
  static var generationBits: UInt32 { 12 }
  static var spareSlots: Int { 1024 }

  let kind: HandleKind
  /// Room for every slot, of which the system provides what is touched. In memory of its own: to read an array that is a
  /// property counts references to it, on each look-up.
  private let slots: UnsafeMutablePointer<Slot>
  /// Slots that have held an object.
  private var usedCount = 0
  private var firstFree = -1
  private var lastFree = -1
  private var freeCount = 0

  init(_ kind: HandleKind) {
    self.kind = kind
    slots = .allocate(capacity: Self.limit)
  }

  deinit { slots.deallocate() }

  private static var limit: Int { 1 << Int(slotBits) }

  /// Objects in the table.
  var count: Int { usedCount - freeCount }

  /// - Throws: `outOfMemory` when every slot is taken.
  func insert(_ object: Object) throws(StatusError) -> UInt32 {
    let index: Int
    if freeCount > Self.spareSlots || (usedCount == Self.limit && freeCount > 0) {
      index = firstFree
      firstFree = slots[index].nextFree
      freeCount -= 1
      slots[index].object = .passRetained(object)
    } else {
      try require(
        usedCount < Self.limit, StatusCode.outOfMemory, "all \(Self.limit) \(kind) handles are in use; release some")
      index = usedCount
      (slots + index).initialize(to: Slot(object: .passRetained(object), generation: 1, nextFree: -1))
      usedCount += 1
    }
    let tag = (kind.rawValue << Self.generationBits) | slots[index].generation
    return (tag << Self.slotBits) | UInt32(index)
  }

  /// The object of a handle, or nil when it is zero, stale, foreign or of
  /// another kind. The table owns it: it lives as long as the lock is held.
  @inline(__always)
  func find(_ handle: UInt32) -> Unmanaged<Object>? {
    guard let index = slotIndex(handle) else { return nil }
    return slots[index].object
  }

  func remove(_ handle: UInt32) -> Object? {
    guard let index = slotIndex(handle), let object = slots[index].object else { return nil }
    free(index)
    return object.takeRetainedValue()
  }

  func removeAll(where isIncluded: (Object) -> Bool) -> [Object] {
    var removed: [Object] = []
    for index in 0..<usedCount {
      guard let object = slots[index].object, isIncluded(object.takeUnretainedValue()) else { continue }
      free(index)
      removed.append(object.takeRetainedValue())
    }
    return removed
  }

  @inline(__always)
  private func slotIndex(_ handle: UInt32) -> Int? {
    let index = Int(handle & ((1 << Self.slotBits) - 1))
    let tag = handle >> Self.slotBits
    guard index < usedCount, tag == (kind.rawValue << Self.generationBits) | slots[index].generation
    else { return nil }
    return index
  }

  private func free(_ index: Int) {
    let generation = slots[index].generation + 1
    slots[index].object = nil
    slots[index].generation = generation < (1 << Self.generationBits) ? generation : 1
    slots[index].nextFree = -1
    if freeCount == 0 {
      firstFree = index
    } else {
      slots[lastFree].nextFree = index
    }
    lastFree = index
    freeCount += 1
  }
}
