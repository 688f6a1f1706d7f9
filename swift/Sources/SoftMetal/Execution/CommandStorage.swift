/// The memory of a command list, which one command buffer hands on to the
/// next: fresh pages cost more than the encoding itself.
final class CommandStorage {
  /// Commands of a list that is worth keeping.
  private static let maxKeptCommands = 32 * 1024
  private static let maxKeptBytes = 16 * 1024 * 1024

  var commands: ContiguousArray<DispatchCommand> = []
  /// Addresses and lengths, as `DispatchCommand.firstArgument` says.
  var arguments: ContiguousArray<UInt> = []
  var bytes = ByteArena()
  /// What the commands use.
  var retained: ContiguousArray<AnyObject> = []

  var isWorthKeeping: Bool {
    commands.capacity <= Self.maxKeptCommands && bytes.capacity <= Self.maxKeptBytes
  }

  func removeAll() {
    commands.removeAll(keepingCapacity: true)
    arguments.removeAll(keepingCapacity: true)
    bytes.removeAll()
    retained.removeAll(keepingCapacity: true)
  }
}
