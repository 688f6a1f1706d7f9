/// The kind of a dispatch, as `ma_pass_describe` names it.
enum Operation: UInt8 {
  case kernel
  case kvCacheCopy
  case kvCacheCopyBatch
  case kvCacheCopySeq
  case kvCacheCopyHeadMajor
  case hadamardQuantizeKv
  case hadamardQuantizeKvSeq
  case dequantizeKv
  case flashAttnPrefill
  case buildMask
  case classifyMaskTiles
}
