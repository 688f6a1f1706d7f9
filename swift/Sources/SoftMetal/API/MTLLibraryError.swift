/// Why a library, a function or a pipeline could not be made.
public struct MTLLibraryError: Error, Sendable {
  public enum Code: Int, Sendable {
    case unsupported = 1
    case `internal` = 2
    case compileFailure = 3
    case compileWarning = 4
    case functionNotFound = 5
    case fileNotFound = 6
  }

  public let code: Code

  /// What went wrong, with the compiler's diagnostics.
  public let localizedDescription: String

  init(_ code: Code, _ text: String) {
    self.code = code
    localizedDescription = text
  }
}

extension MTLLibraryError: CustomStringConvertible {
  public var description: String { localizedDescription }
}
