/// Who can see a resource's memory.
public enum MTLStorageMode: UInt, Sendable {
  /// CPU and device see the same bytes.
  case shared = 0
  case managed = 1
  /// Only the device.
  case `private` = 2
  case memoryless = 3
}
