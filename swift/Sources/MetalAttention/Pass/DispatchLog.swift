/// Bytes that a dispatch binds for its kernel.
private struct ByteArgument {
  let dispatch: Int
  let index: Int
  let start: Int
  let count: Int
}

/// A buffer that the encoder of a pass has bound.
private struct BoundBuffer {
  /// Metal's object, which lives as long as the pass's command buffer; nil for bytes, and for nothing.
  var buffer: ObjectIdentifier?
  var offset: UInt64 = 0
}

/// What a pass holds so far.
struct DispatchLog {
  /// Dispatches of a log whose memory is worth keeping, and the bytes that they bind.
  private static let mostKept = (dispatches: 32 * 1024, bytes: 4 * 1024 * 1024)

  private(set) var records = ContiguousArray<DispatchRecord>()
  /// What the dispatches touch, in their order, then what is bound for the
  /// next one.
  var accesses = ContiguousArray<Access>()
  private var recordedAccesses = 0
  /// The bytes bound by all dispatches, one after another.
  private var bytes = ContiguousArray<UInt8>()
  private var arguments = ContiguousArray<ByteArgument>()
  private var hazards = HazardTracker()
  private var selected: UnsafeMutableRawPointer?
  /// By index.
  private var bound = ContiguousArray(repeating: BoundBuffer(), count: Int(KernelBinding.maxIndex) + 1)

  init() {
    // Little: a log whose pass has gone is taken by the next with all that it grew to, but passes may be forgotten.
    records.reserveCapacity(4)
    accesses.reserveCapacity(16)
    bytes.reserveCapacity(256)
    arguments.reserveCapacity(4)
  }

  /// Keeps what the next dispatch binds as bytes.
  @inline(__always)
  mutating func keep(_ value: UnsafeRawBufferPointer, at index: Int) {
    if index < bound.count { bound[index].buffer = nil }
    arguments.append(ByteArgument(dispatch: records.count, index: index, start: bytes.count, count: value.count))
    // As a raw buffer they would be copied one by one.
    value.withMemoryRebound(to: UInt8.self) { bytes.append(contentsOf: $0) }
  }

  /// What a dispatch has bound as bytes at `index`.
  func bytes(ofDispatch dispatch: Int, at index: Int) -> [UInt8] {
    guard let argument = arguments.last(where: { $0.dispatch == dispatch && $0.index == index }) else { return [] }
    return Array(bytes[argument.start..<(argument.start + argument.count)])
  }

  /// Notes the pipeline of the next dispatch; false when it is the last one's.
  @inline(__always)
  mutating func select(_ pipeline: Pipeline) -> Bool {
    let pointer = Unmanaged.passUnretained(pipeline).toOpaque()
    defer { selected = pointer }
    return selected != pointer
  }

  /// Notes a buffer that the next dispatch binds; false where an earlier one has bound it there, and it still is.
  @inline(__always)
  mutating func bind(_ buffer: any MTLBuffer, offset: UInt64, at index: Int) -> Bool {
    guard index < bound.count else { return true }
    let buffer = ObjectIdentifier(buffer)
    if bound[index].buffer == buffer, bound[index].offset == offset { return false }
    bound[index] = BoundBuffer(buffer: buffer, offset: offset)
    return true
  }

  /// Notes that the next dispatch has an encoder of its own, which has nothing bound.
  mutating func forgetBound() {
    for index in bound.indices { bound[index].buffer = nil }
  }

  var isWorthKeeping: Bool {
    records.capacity <= Self.mostKept.dispatches && bytes.capacity <= Self.mostKept.bytes
  }

  /// Empties the log, and keeps its memory.
  mutating func removeAll() {
    records.removeAll(keepingCapacity: true)
    accesses.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    arguments.removeAll(keepingCapacity: true)
    hazards.removeAll()
    recordedAccesses = 0
    selected = nil
    forgetBound()
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
