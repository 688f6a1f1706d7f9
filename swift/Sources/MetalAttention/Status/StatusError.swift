/// Why a call was refused.
struct StatusError: Error {
  /// One of `StatusCode`.
  let code: Int32
  /// Names the argument, both numbers of a failed comparison, and the remedy.
  let message: Sentence

  init(_ code: Int32, _ message: Sentence) {
    self.code = code
    self.message = message
  }
}

/// Refuses the call unless `condition` holds. The message is built only then.
@inline(__always)
func require(
  _ condition: Bool, _ code: Int32, _ message: @autoclosure () -> Sentence
) throws(StatusError) {
  if !condition { throw refusal(code, message) }
}

/// Apart, so that no caller's code has in its midst what makes messages.
@inline(never)
private func refusal(_ code: Int32, _ message: () -> Sentence) -> StatusError {
  StatusError(code, message())
}

/// The value of `pointer`, an argument that must not be NULL.
@inline(__always)
func unwrap<Pointee>(_ pointer: Pointee?, _ argument: @autoclosure () -> Argument) throws(StatusError) -> Pointee {
  guard let pointer else { throw refusal(StatusCode.invalidArgument) { "\(argument()) is NULL" } }
  return pointer
}

/// Runs the body of the exported function of that name, and turns its error
/// into a status and the thread's failure.
/// - Parameter withV: whether the call has K and V, which a caller may name
///   otherwise than K alone; asked after a failure only.
@inline(__always)
func status(
  _ function: StaticString, withV: @autoclosure () -> Bool = false, _ body: () throws(StatusError) -> Void
) -> Int32 {
  withAutoreleasePool {
    do throws(StatusError) {
      try body()
      return StatusCode.ok
    } catch {
      Failure.set("\(function)", error, withV: withV())
      return error.code
    }
  }
}
