/// What the grid of a dispatch counts.
enum DispatchForm: UInt32 {
  case threadgroups = 0
  case threads = 1
}
