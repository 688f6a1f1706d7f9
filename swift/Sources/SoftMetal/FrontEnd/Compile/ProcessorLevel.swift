/// A level of the x86-64 psABI: code made for one runs on every processor that has it.
package enum ProcessorLevel: String, Hashable, Sendable, CaseIterable {
  case v3 = "x86-64-v3"
  case v4 = "x86-64-v4"

  /// Those that a processor of level `number` has, the highest first.
  static func upTo(_ number: Int32) -> [ProcessorLevel] { allCases.reversed().filter { $0.number <= number } }

  var number: Int32 {
    switch self {
    case .v3: 3
    case .v4: 4
    }
  }
}
