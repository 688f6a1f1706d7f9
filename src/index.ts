/**
 * Attention and KV-cache kernels for Apple GPUs, called from Bun. On Linux the
 * same shaders run on the CPU.
 *
 * @module
 */
export {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  type TensorValues,
} from "./convert.ts";
export { Device, type DeviceOptions } from "./device.ts";
export type { BufferAccess, BufferArgument, DispatchOptions, Extent } from "./dispatch.ts";
export { type DType, type DTypeViews, dtypeSize } from "./dtypes.ts";
export { MetalAttentionError, type MetalAttentionErrorCode } from "./errors.ts";
export type { ConstantDType, ConstantScalar, FunctionConstant } from "./ffi/constants.ts";
export type {
  DeviceInfo,
  DispatchForm,
  Extent3,
  PassInfo,
  PassState,
  PipelineInfo,
} from "./ffi/records.ts";
export type { Pipeline, PipelineOptions } from "./kernels.ts";
export type { AttentionLayout, AttentionStrides, StridedLayout } from "./ops/attentionLayout.ts";
export {
  type BuildCausalMaskArgs,
  type BuildSlidingWindowMaskArgs,
  buildCausalMask,
  buildSlidingWindowMask,
} from "./ops/buildMask.ts";
export { type ClassifyMaskTilesArgs, classifyMaskTiles } from "./ops/classifyMaskTiles.ts";
export { type DequantizeKvArgs, dequantizeKv } from "./ops/dequantizeKv.ts";
export { type FlashAttnPrefillArgs, flashAttnPrefill } from "./ops/flashAttnPrefill.ts";
export {
  type AttentionDType,
  type AttentionHeadDim,
  type AttentionMaskKind,
  type FlashAttnPrefillSupport,
  flashAttnPrefillSupport,
} from "./ops/flashAttnPrefillSupport.ts";
export { type HadamardQuantizeKvArgs, hadamardQuantizeKv } from "./ops/hadamardQuantizeKv.ts";
export { type HadamardQuantizeKvSeqArgs, hadamardQuantizeKvSeq } from "./ops/hadamardQuantizeKvSeq.ts";
export { type KvCacheBytes, type KvCacheBytesArgs, kvCacheBytes } from "./ops/kvCacheBytes.ts";
export { type KvCacheCopyArgs, kvCacheCopy } from "./ops/kvCacheCopy.ts";
export { type KvCacheCopyBatchArgs, kvCacheCopyBatch } from "./ops/kvCacheCopyBatch.ts";
export { type KvCacheCopyHeadMajorArgs, kvCacheCopyHeadMajor } from "./ops/kvCacheCopyHeadMajor.ts";
export { type KvCacheCopySeqArgs, kvCacheCopySeq } from "./ops/kvCacheCopySeq.ts";
export type { QuantizedBits, QuantizedFormatArgs, QuantizedPacking } from "./ops/quantizedFormat.ts";
export type {
  DequantizeStream,
  DequantizeStreams,
  QuantizedCache,
  QuantizeStream,
  QuantizeStreams,
} from "./ops/quantizedStreams.ts";
export type { CopyStream, CopyStreams } from "./ops/streams.ts";
export type { TileClasses } from "./ops/tileClasses.ts";
export type { BufferRange, DispatchDescription, Pass, PassOptions } from "./pass.ts";
export type { Tensor } from "./tensor.ts";
