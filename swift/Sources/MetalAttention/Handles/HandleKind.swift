/// What a handle names. The kind is part of the handle, so that one kind never
/// passes for another.
enum HandleKind: UInt32 {
  case device = 0
  case buffer = 1
  case pass = 2
  case pipeline = 3
}
