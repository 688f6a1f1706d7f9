/// Why a command buffer ended with status `.error`.
public struct MTLCommandBufferError: Error, Sendable {
  public enum Code: UInt, Sendable {
    case none = 0
    case `internal` = 1
    case timeout = 2
    case pageFault = 3
    case accessRevoked = 4
    case notPermitted = 7
    case outOfMemory = 8
    case invalidResource = 9
    case memoryless = 10
    case deviceRemoved = 11
    case stackOverflow = 12
  }

  public let code: Code

  /// What went wrong, with the argument's name and the numbers.
  public let localizedDescription: String

  init(_ code: Code, _ text: String) {
    self.code = code
    localizedDescription = text
  }
}

extension MTLCommandBufferError: CustomStringConvertible {
  public var description: String { localizedDescription }
}
