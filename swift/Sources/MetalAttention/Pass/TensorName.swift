/// The tensor arguments of the operations, by their names in the C ABI.
enum TensorName: UInt8 {
  case src, cache
  case srcK, cacheK, srcV, cacheV
  case packedK, normsK, outK, packedV, normsV, outV, rmsScratch
  case q, k, v, out, mask, tileClasses
}
