/// Every object that a caller holds by handle.
///
/// One lock guards the tables and all that is reached through them: the state
/// of passes, the ownership of buffers, the pipelines found so far. It is held
/// for the length of one encoded dispatch, never while a shader compiles or a
/// pass runs.
enum HandleSpace {
  static let lock = Lock()
  static let devices = HandleTable<Device>(.device)
  static let buffers = HandleTable<Buffer>(.buffer)
  static let passes = HandleTable<Pass>(.pass)
  static let pipelines = HandleTable<Pipeline>(.pipeline)
}

extension HandleTable {
  /// The object of a handle. The caller holds the lock.
  @inline(__always)
  func resolve(_ handle: UInt32, _ argument: @autoclosure () -> Argument) throws(StatusError) -> Object {
    try resolveUncounted(handle, argument()).takeUnretainedValue()
  }

  /// As `resolve`, for use while the lock is held: to count references costs
  /// more than most checks.
  @inline(__always)
  func resolveUncounted(
    _ handle: UInt32, _ argument: @autoclosure () -> Argument
  ) throws(StatusError) -> Unmanaged<Object> {
    guard let object = find(handle) else { throw unknown(handle, argument()) }
    return object
  }

  /// The object of a handle, for work outside the lock.
  func open(_ handle: UInt32, _ argument: Argument) throws(StatusError) -> Object {
    try HandleSpace.lock.withLock { () throws(StatusError) in try resolve(handle, argument) }
  }

  /// Takes an object out of the table.
  func close(_ handle: UInt32, _ argument: Argument) throws(StatusError) -> Object {
    guard let object = HandleSpace.lock.withLock({ remove(handle) }) else {
      throw unknown(handle, argument)
    }
    return object
  }

  @inline(never)
  private func unknown(_ handle: UInt32, _ argument: Argument) -> StatusError {
    StatusError(
      StatusCode.invalidHandle,
      handle == 0
        ? "\(argument): the handle is 0"
        : "\(argument): \(handle) is not the handle of an open \(kind); it may have been released")
  }
}
