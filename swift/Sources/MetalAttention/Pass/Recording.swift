import CMetalAttention

/// What a recorded pass holds: operations with their arguments, checked once,
/// and the dispatches that they came to. Guarded by the lock of `HandleSpace`.
final class Recording {
  /// A number that each run gives.
  struct Scalar {
    let name: String
    let range: ClosedRange<UInt32>
  }

  /// A tensor that a run may replace by another of the same type and length.
  struct Replaceable {
    let name: String
    let tensor: MATensor

    /// Whether a tensor of an operation is this one or a part of it.
    fileprivate func holds(_ place: ArgumentBlock.TensorPlace) -> Bool {
      // No operation may have checked the place. That of the tensor lies in a buffer.
      place.buffer == tensor.buffer && place.offset >= tensor.offset && place.length <= tensor.length
        && place.offset - tensor.offset <= tensor.length - place.length
    }
  }

  typealias Encode = (UnsafeRawPointer, Pass) throws(StatusError) -> PipelineSlot?

  struct RecordedOperation {
    /// The C function, for messages.
    let function: StaticString
    let withV: Bool
    let dispatches: Range<Int>
    let arguments: ArgumentBlock
    /// Where scalars go in the arguments.
    let scalars: [(offset: Int, scalar: Int)]
    /// Where replaceable tensors go.
    let tensors: [(place: ArgumentBlock.TensorPlace, replaceable: Int)]
    /// Whether each run has to check it again, whatever changes.
    let isAlwaysChecked: Bool
    let encode: Encode
  }

  struct RecordedDispatch {
    let operation: Operation
    /// Kept alive by the device's registry, or where it is a caller's by the recorded pass.
    let pipeline: Unmanaged<Pipeline>
    let form: DispatchForm
    let grid: GridSize
    let threads: GridSize
    /// Among the dispatches as they were recorded.
    let needsBarrier: Bool
    let bindings: Range<Int>
    let accesses: Range<Int>
  }

  enum Binding {
    /// The recording keeps the buffer alive.
    case buffer(Unmanaged<Buffer>, offset: UInt64)
    /// In the recording's bytes.
    case bytes(Range<Int>)
    case threadgroup(length: Int)
    /// Reached by its address; the recording keeps it alive too.
    case use(Unmanaged<Buffer>, isWritten: Bool)
  }

  private(set) var scalars: [Scalar] = []
  private(set) var replaceables: [Replaceable] = []
  private(set) var operations: ContiguousArray<RecordedOperation> = []
  private(set) var dispatches: ContiguousArray<RecordedDispatch> = []
  private(set) var bindings: ContiguousArray<(index: Int, Binding)> = []
  private(set) var bytes: ContiguousArray<UInt8> = []
  private(set) var accesses: ContiguousArray<Access> = []
  private var retained: [ObjectIdentifier: Buffer] = [:]

  // What the next operation or dispatch takes.
  private var pendingScalars: [(argument: String, scalar: Int)] = []
  private var firstDispatch = 0
  private var firstBinding = 0
  private var firstAccess = 0
  /// To be set by an operation whose checks depend on what other passes encode.
  var isAlwaysChecked = false

  // MARK: Declarations

  func requireNew(_ name: String) throws(StatusError) {
    let isKnown = scalars.contains { $0.name == name } || replaceables.contains { $0.name == name }
    try require(!isKnown, StatusCode.invalidArgument, "\(arg: "name"): \(name) is declared before in this pass")
  }

  func add(_ scalar: Scalar) -> Int {
    scalars.append(scalar)
    return scalars.count - 1
  }

  func add(_ replaceable: Replaceable) -> Int {
    replaceables.append(replaceable)
    return replaceables.count - 1
  }

  /// Has the next operation take its argument from a scalar.
  func use(_ scalar: Int, as argument: String) {
    pendingScalars.append((argument, scalar))
  }

  func forgetUses() {
    pendingScalars = []
  }

  // MARK: Operations

  /// Records an operation; `body` checks it and encodes it into the pass,
  /// `encode` encodes changed arguments. A refusal leaves no trace.
  func record(
    _ function: StaticString, withV: Bool, _ arguments: ArgumentBlock, encode: @escaping Encode,
    _ body: () throws(StatusError) -> PipelineSlot?
  ) throws(StatusError) -> PipelineSlot? {
    isAlwaysChecked = false
    let scalars: [(offset: Int, scalar: Int)]
    do throws(StatusError) {
      scalars = try places(in: arguments, "\(function)", withV: withV)
      // Without its pipeline it is encoded again from the start.
      if let slot = try body() { return slot }
    } catch {
      pendingScalars = []
      throw error
    }
    pendingScalars = []
    let tensors = arguments.tensors.flatMap { place in
      replaceables.indices.filter { replaceables[$0].holds(place) }.prefix(1).map { (place, $0) }
    }
    operations.append(
      RecordedOperation(
        function: function, withV: withV, dispatches: firstDispatch..<dispatches.count, arguments: arguments,
        scalars: scalars, tensors: tensors, isAlwaysChecked: isAlwaysChecked, encode: encode))
    firstDispatch = dispatches.count
    return nil
  }

  private func places(
    in arguments: ArgumentBlock, _ function: String, withV: Bool
  ) throws(StatusError) -> [(offset: Int, scalar: Int)] {
    var places: [(offset: Int, scalar: Int)] = []
    for (argument, scalar) in pendingScalars {
      let offsets = arguments.offsets(of: argument) { ArgumentNames.name($0, of: function, withV: withV) }
      guard !offsets.isEmpty else {
        throw StatusError(
          StatusCode.unsupported,
          "\(Argument(argument)): \(function) cannot take it from a parameter; parameters stand for positions and lengths, and for bytes of 4 in a dispatch"
        )
      }
      places += offsets.map { ($0, scalar) }
    }
    return places
  }

  // MARK: What an operation encodes

  func bind(_ buffer: Unmanaged<Buffer>, offset: UInt64, at index: Int) {
    keep(buffer)
    bindings.append((index, .buffer(buffer, offset: offset)))
  }

  private func keep(_ buffer: Unmanaged<Buffer>) {
    let buffer = buffer.takeUnretainedValue()
    retained[ObjectIdentifier(buffer)] = buffer
  }

  func bind(_ value: UnsafeRawBufferPointer, at index: Int) {
    bindings.append((index, .bytes(bytes.count..<(bytes.count + value.count))))
    bytes.append(contentsOf: value)
  }

  func setThreadgroupMemory(length: Int, at index: Int) {
    bindings.append((index, .threadgroup(length: length)))
  }

  func use(_ buffer: Unmanaged<Buffer>, isWritten: Bool) {
    keep(buffer)
    bindings.append((0, .use(buffer, isWritten: isWritten)))
  }

  func note(_ access: Access) {
    accesses.append(access)
  }

  func dispatch(
    _ operation: Operation, _ pipeline: Unmanaged<Pipeline>, _ form: DispatchForm, grid: GridSize, threads: GridSize,
    needsBarrier: Bool
  ) {
    dispatches.append(
      RecordedDispatch(
        operation: operation, pipeline: pipeline, form: form, grid: grid, threads: threads,
        needsBarrier: needsBarrier, bindings: firstBinding..<bindings.count, accesses: firstAccess..<accesses.count))
    firstBinding = bindings.count
    firstAccess = accesses.count
  }
}
