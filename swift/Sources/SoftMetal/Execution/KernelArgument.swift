/// What a kernel asks of one of its arguments.
struct KernelArgument {
  /// Of `[[buffer(index)]]` or `[[threadgroup(index)]]`.
  let index: Int
  /// Bytes that must be bound at least.
  let minimumLength: Int
  /// Bytes, a power of two.
  let alignment: Int
}
