/// One function constant's value, as the host set it.
struct FunctionConstantValue: Hashable, Sendable {
  let index: Int
  let type: MTLDataType
  let bytes: [UInt8]
}
