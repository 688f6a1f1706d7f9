/// <reference lib="esnext.disposable" preserve="true" />
/// <reference lib="esnext.float16" preserve="true" />
/**
 * Attention and KV-cache kernels for Apple GPUs, called from Bun. On Linux the
 * same shaders run on the CPU or an NVIDIA GPU.
 *
 * @module
 */
export type { KvAppendArgs } from "./cache/appendArgs.ts";
export type { KvAttendArgs } from "./cache/attendArgs.ts";
export type { KvFormat } from "./cache/format.ts";
export { KvCache } from "./cache/kvCache.ts";
export type { KvCacheMemory } from "./cache/memory.ts";
export type { KvCacheOptions, KvCachePages } from "./cache/options.ts";
export type { KvRope } from "./cache/ropeNote.ts";
export type { KvSequence } from "./cache/sequence.ts";
export {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  type TensorValues,
} from "./device/convert.ts";
export type { BufferRange, DispatchDescription } from "./device/describe.ts";
export { Device, type DeviceOptions, type FileUrl, type RecordOptions } from "./device/device.ts";
export type { BufferAccess, BufferArgument, DispatchOptions, Extent } from "./device/dispatch.ts";
export { type DType, type DTypeViews, dtypeSize, type FloatDType } from "./device/dtypes.ts";
export type { FunctionConstant, Pipeline, PipelineOptions, SourceOptions } from "./device/kernels.ts";
export type { Pass, PassOptions } from "./device/pass.ts";
export type { ParameterOptions, RecordedPass, RecordingPass, RunValues } from "./device/recording.ts";
export type { SharedTensor } from "./device/share.ts";
export type { Tensor, TensorOptions } from "./device/tensor.ts";
export { MetalAttentionError, type MetalAttentionErrorCode } from "./errors.ts";
export type {
  DeviceInfo,
  DispatchForm,
  Extent3,
  PassInfo,
  PassState,
  PipelineInfo,
} from "./ffi/records.ts";
export type { AttentionLayout, AttentionStrides, StridedLayout } from "./ops/attention/attentionLayout.ts";
export type { AttentionTail } from "./ops/attention/attentionOptions.ts";
export { type FlashAttnPrefillArgs, flashAttnPrefill } from "./ops/attention/flashAttnPrefill.ts";
export {
  type AttentionDType,
  type AttentionMaskKind,
  type FlashAttnPrefillSupport,
  flashAttnPrefillSupport,
} from "./ops/attention/flashAttnPrefillSupport.ts";
export type { CopyDType, CopyStream, CopyStreams } from "./ops/cacheCopy/copyStreams.ts";
export { type KvCacheAppendArgs, kvCacheAppend } from "./ops/cacheCopy/kvCacheAppend.ts";
export { type KvCacheCopyArgs, kvCacheCopy } from "./ops/cacheCopy/kvCacheCopy.ts";
export { type KvCacheCopyBatchArgs, kvCacheCopyBatch } from "./ops/cacheCopy/kvCacheCopyBatch.ts";
export { type KvCacheCopyHeadMajorArgs, kvCacheCopyHeadMajor } from "./ops/cacheCopy/kvCacheCopyHeadMajor.ts";
export { type KvCacheCopySeqArgs, kvCacheCopySeq } from "./ops/cacheCopy/kvCacheCopySeq.ts";
export type { DecodeCache, DecodeCodes, DecodeDType } from "./ops/decode/decodeCache.ts";
export { type FlashAttnDecodeArgs, flashAttnDecode } from "./ops/decode/flashAttnDecode.ts";
export {
  type DecodeStorage,
  type FlashAttnDecodeSupport,
  flashAttnDecodeSupport,
} from "./ops/decode/flashAttnDecodeSupport.ts";
export { type AttentionPart, type MergeAttentionArgs, mergeAttention } from "./ops/decode/mergeAttention.ts";
export {
  type BuildCausalMaskArgs,
  type BuildSlidingWindowMaskArgs,
  buildCausalMask,
  buildSlidingWindowMask,
  type MaskDType,
} from "./ops/masks/buildMask.ts";
export { type ClassifyMaskTilesArgs, classifyMaskTiles } from "./ops/masks/classifyMaskTiles.ts";
export type { TileClasses } from "./ops/masks/tileClasses.ts";
export { type DequantizeKvArgs, dequantizeKv } from "./ops/quantizedCache/dequantizeKv.ts";
export { type HadamardQuantizeKvArgs, hadamardQuantizeKv } from "./ops/quantizedCache/hadamardQuantizeKv.ts";
export { type HadamardQuantizeKvSeqArgs, hadamardQuantizeKvSeq } from "./ops/quantizedCache/hadamardQuantizeKvSeq.ts";
export { type KvCacheBytes, type KvCacheBytesArgs, kvCacheBytes } from "./ops/quantizedCache/kvCacheBytes.ts";
export type { QuantizedBits, QuantizedFormatArgs, QuantizedPacking } from "./ops/quantizedCache/quantizedFormat.ts";
export type {
  DequantizeStream,
  DequantizeStreams,
  QuantizedCache,
  QuantizedWalkArgs,
  QuantizeRunPair,
  QuantizeRunStream,
  QuantizeRuns,
  QuantizeStream,
  QuantizeStreams,
} from "./ops/quantizedCache/quantizedStreams.ts";
export type { AppendRope } from "./ops/rope/appendRope.ts";
export {
  type ApplyRopeArgs,
  applyRope,
  type RopeDType,
  type RopeStream,
  type RopeStreams,
} from "./ops/rope/applyRope.ts";
export type { RopeAngles } from "./ops/rope/ropeAngles.ts";
export {
  type DefaultRope,
  type LinearRope,
  type Llama3Rope,
  type LongRope,
  type ProportionalRope,
  type RopeFrequencies,
  type RopeFrequenciesArgs,
  ropeFrequencies,
  type YarnRope,
} from "./ops/rope/ropeFrequencies.ts";
export {
  type FieldType,
  type FieldTypes,
  type FieldValue,
  type Struct,
  type StructValues,
  struct,
} from "./struct/struct.ts";
export type { ScalarType, VectorType } from "./struct/types.ts";
