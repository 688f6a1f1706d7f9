/// Fields of parameter structs that follow from others.
enum Derived {
  /// The value that follows, where the caller gave it or 0.
  @inline(__always)
  static func fill<Value: FixedWidthInteger>(
    _ given: Value, _ name: Argument, _ value: Value, _ formula: @autoclosure () -> Sentence
  ) throws(StatusError) -> Value {
    try require(
      given == 0 || given == value, StatusCode.invalidArgument,
      "\(name) is \(given), but \(formula()) is \(value); 0 lets the library fill it in")
    return value
  }
}
