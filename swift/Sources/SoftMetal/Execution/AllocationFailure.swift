import Synchronization

/// One allocation of a device that is to fail, for tests of what its callers
/// then do. All others succeed.
final class AllocationFailure: Sendable {
  enum Kind: String, CaseIterable {
    case buffer
    case pipeline
    /// A command buffer.
    case pass
    case encoder
  }

  let kind: Kind
  /// Which of the kind, from 1.
  let number: Int
  private let count = Atomic<Int>(0)

  init(_ kind: Kind, number: Int) {
    self.kind = kind
    self.number = number
  }

  /// From `KIND:NUMBER`.
  convenience init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let kind = Kind(rawValue: String(parts[0])), let number = Int(parts[1]), number > 0
    else { return nil }
    self.init(kind, number: number)
  }

  /// Counts an allocation; true for the one that is to fail.
  func strikes(_ kind: Kind) -> Bool {
    kind == self.kind && count.wrappingAdd(1, ordering: .relaxed).newValue == number
  }
}
