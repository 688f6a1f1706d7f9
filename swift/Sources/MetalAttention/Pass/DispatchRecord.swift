/// An encoded dispatch, as the pass remembers it for its description.
struct DispatchRecord {
  let operation: Operation
  let form: DispatchForm
  let needsBarrier: Bool
  let grid: GridSize
  let threadsPerThreadgroup: GridSize
  /// Kept alive by the registry of the pass's device, or where it is a caller's by the pass.
  let pipeline: Unmanaged<Pipeline>
  /// Where its accesses end in the list of the pass.
  let accessEnd: Int
}
