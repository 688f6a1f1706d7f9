/// The value that a caller's pointer of any alignment leads to.
@inline(__always)
func read<Value: BitwiseCopyable>(
  _ pointer: UnsafePointer<Value>?, _ argument: Argument
) throws(StatusError) -> Value {
  UnsafeRawPointer(try unwrap(pointer, argument)).loadUnaligned(as: Value.self)
}

/// Writes a value through a caller's pointer of any alignment.
@inline(__always)
func store<Value: BitwiseCopyable>(_ value: Value, to pointer: UnsafeMutablePointer<Value>) {
  UnsafeMutableRawPointer(pointer).storeBytes(of: value, as: Value.self)
}
