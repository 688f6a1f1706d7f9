/// What a function may do with an argument, by its declared type.
public enum MTLBindingAccess: UInt, Sendable {
  case readOnly = 0
  case readWrite = 1
  case writeOnly = 2
}
