/// The memory of a command list, which one command buffer hands on to the
/// next: fresh pages cost more than the encoding itself.
final class CommandStorage {
  /// Commands of a list that is worth keeping.
  private static let maxKeptCommands = 32 * 1024
  private static let maxKeptBytes = 16 * 1024 * 1024

  // One thread at a time has the storage: it encodes, or runs. So what each dispatch appends to is not checked for
  // exclusive access at run time.
  @exclusivity(unchecked)
  var commands: ContiguousArray<DispatchCommand> = []
  /// Addresses and lengths, as `DispatchCommand.firstArgument` says.
  @exclusivity(unchecked)
  var arguments: ContiguousArray<UInt> = []
  @exclusivity(unchecked)
  var bytes: ByteArena
  /// In the order of their commands; encoders of different stages lie around each.
  var samples: [SampleCommand] = []
  /// What the commands use.
  var retained: ContiguousArray<AnyObject> = []
  /// Of the retained buffers, where the device guards them.
  var guards: ContiguousArray<BufferGuard> = []

  init(_ mapping: (any MemoryMapping)?) {
    bytes = ByteArena(mapping)
  }

  deinit { bytes.deallocate() }

  /// What the commands have written outside their guarded buffers; nil when
  /// they have not. Looks at all, so that none is reported again.
  func takeViolation() -> MTLCommandBufferError? {
    let violations = guards.compactMap { $0.takeViolation() }
    return violations.isEmpty ? nil : MTLCommandBufferError(.pageFault, violations.joined(separator: "; "))
  }

  var isWorthKeeping: Bool {
    commands.capacity <= Self.maxKeptCommands && bytes.capacity <= Self.maxKeptBytes
  }

  func removeAll() {
    commands.removeAll(keepingCapacity: true)
    arguments.removeAll(keepingCapacity: true)
    bytes.removeAll()
    samples.removeAll(keepingCapacity: true)
    retained.removeAll(keepingCapacity: true)
    guards.removeAll(keepingCapacity: true)
  }
}
