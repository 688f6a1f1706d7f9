/// What a software device is made with.
struct DeviceSettings {
  static let maxThreads = 256

  /// Of the system's default device.
  var choice = DeviceChoice.processor
  var threads: Int
  /// Seconds that one dispatch may take; 0 for any time.
  var timeLimit: Double
  var order: ExecutionOrder
  var guardsBuffers = false
  /// Whether a GPU's own memory is filled with zeros.
  var zeroesPrivate = true
  /// Whether kernels run on both executors, to compare them.
  var checksLockstep = false
  /// Whether counters are sampled between dispatches too.
  var samplesDispatches = false
  /// Whether products of matrices count as many times as fast as other arithmetic; nil: as on the device.
  var matrixUnits: Bool?
  /// The allocation that is to fail.
  var failure: AllocationFailure?

  init(threads: Int? = nil, timeLimit: Double = 60, order: ExecutionOrder = .forward) {
    self.threads = threads ?? min(Processor.usableCount, Self.maxThreads)
    self.timeLimit = timeLimit
    self.order = order
  }

  /// Reads the variables that `MTLCreateSystemDefaultDevice` lists.
  init(environment: (String) -> String?) throws(DeviceError) {
    self.init()
    /// A variable that is 0 or 1; nil where it is not set.
    func flag(_ name: String) throws(DeviceError) -> Bool? {
      switch environment(name) {
      case nil: return nil
      case "0": return false
      case "1": return true
      case let text?: throw DeviceError("\(name) is \"\(text)\"; expected 0 or 1")
      }
    }
    if let text = environment("SOFTMETAL_THREADS") {
      guard let value = Int(text), 1...Self.maxThreads ~= value else {
        throw DeviceError("SOFTMETAL_THREADS is \"\(text)\"; expected a number from 1 to \(Self.maxThreads)")
      }
      threads = value
    }
    if let text = environment("SOFTMETAL_TIME_LIMIT") {
      guard let value = Double(text), value >= 0, value.isFinite else {
        throw DeviceError("SOFTMETAL_TIME_LIMIT is \"\(text)\"; expected seconds, or 0 for no limit")
      }
      timeLimit = value
    }
    if let text = environment("SOFTMETAL_CACHE_LIMIT") {
      guard let value = Int(text), value >= 0 else {
        throw DeviceError("SOFTMETAL_CACHE_LIMIT is \"\(text)\"; expected a number of bytes")
      }
    }
    if let text = environment("SOFTMETAL_ORDER") {
      guard let value = ExecutionOrder(text) else {
        throw DeviceError("SOFTMETAL_ORDER is \"\(text)\"; expected forward, reverse or shuffle:SEED")
      }
      order = value
    }
    if let text = environment("SOFTMETAL_DEVICE") {
      do throws(DeviceError) {
        choice = try DeviceChoice(text)
      } catch {
        throw DeviceError("SOFTMETAL_DEVICE: \(error)")
      }
    }
    if let text = environment("SOFTMETAL_EXECUTOR") {
      guard text == "vectors" || text == "threads" else {
        throw DeviceError("SOFTMETAL_EXECUTOR is \"\(text)\"; expected vectors or threads")
      }
    }
    if let text = environment("SOFTMETAL_CHECK") {
      guard text == "lockstep" else { throw DeviceError("SOFTMETAL_CHECK is \"\(text)\"; expected lockstep") }
      checksLockstep = true
    }
    if let value = try flag("SOFTMETAL_GUARD") { guardsBuffers = value }
    if let value = try flag("SOFTMETAL_UNWRITTEN") { zeroesPrivate = !value }
    // Checked here, as the cache's limit and the executor are, and read where shaders are compiled.
    _ = try flag("SOFTMETAL_ALIGNED_BARRIERS")
    if let text = environment("SOFTMETAL_COUNTERS") {
      guard text == "stage" || text == "dispatch" else {
        throw DeviceError("SOFTMETAL_COUNTERS is \"\(text)\"; expected stage or dispatch")
      }
      samplesDispatches = text == "dispatch"
    }
    matrixUnits = try flag("SOFTMETAL_MATRIX_UNITS")
    if let text = environment("SOFTMETAL_FAIL") {
      guard let value = AllocationFailure(text) else {
        let kinds = AllocationFailure.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        throw DeviceError("SOFTMETAL_FAIL is \"\(text)\"; expected KIND:NUMBER, a kind of \(kinds), a number from 1")
      }
      failure = value
    }
  }
}
