/// Why a call was refused.
struct StatusError: Error {
  /// One of `StatusCode`.
  let code: Int32
  /// Names the argument, both numbers of a failed comparison, and the remedy.
  let message: String

  init(_ code: Int32, _ message: String) {
    self.code = code
    self.message = message
  }
}

/// Refuses the call unless `condition` holds. The message is built only then.
@inline(__always)
func require(
  _ condition: Bool, _ code: Int32, _ message: @autoclosure () -> String
) throws(StatusError) {
  if !condition { throw StatusError(code, message()) }
}

/// The value of `pointer`, an argument that must not be NULL.
@inline(__always)
func unwrap<Pointee>(_ pointer: Pointee?, _ argument: StaticString) throws(StatusError) -> Pointee {
  guard let pointer else { throw StatusError(StatusCode.invalidArgument, "\(argument) is NULL") }
  return pointer
}

/// Runs the body of the exported function of that name, and turns its error
/// into a status and the thread's message.
@inline(__always)
func status(_ function: StaticString, _ body: () throws(StatusError) -> Void) -> Int32 {
  withAutoreleasePool {
    do throws(StatusError) {
      try body()
      return StatusCode.ok
    } catch {
      ThreadMessage.set("\(function): \(error.message)")
      return error.code
    }
  }
}
