/// What a pass holds so far.
struct DispatchLog {
  private(set) var records = ContiguousArray<DispatchRecord>()
  /// What the dispatches touch, in their order, then what is bound for the
  /// next one.
  var accesses = ContiguousArray<Access>()
  private var recordedAccesses = 0
  private var hazards = HazardTracker()
  private var selected: UnsafeMutableRawPointer?

  init() {
    records.reserveCapacity(64)
    accesses.reserveCapacity(256)
  }

  /// Notes the pipeline of the next dispatch; false when it is the last one's.
  @inline(__always)
  mutating func select(_ pipeline: Pipeline) -> Bool {
    let pointer = Unmanaged.passUnretained(pipeline).toOpaque()
    defer { selected = pointer }
    return selected != pointer
  }

  /// Whether the next dispatch needs a barrier before it.
  mutating func conflicts() -> Bool {
    hazards.admit(accesses, from: recordedAccesses)
  }

  mutating func record(_ record: DispatchRecord) {
    recordedAccesses = accesses.count
    records.append(record)
  }
}
