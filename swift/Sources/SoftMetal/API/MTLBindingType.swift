/// What an argument is bound to.
public enum MTLBindingType: Int, Sendable {
  case buffer = 0
  case threadgroupMemory = 1
  case texture = 2
  case sampler = 3
}
