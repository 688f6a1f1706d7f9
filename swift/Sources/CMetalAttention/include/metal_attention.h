/// metal-attention: the C ABI.
///
/// Every function but `ma_abi_version` and `ma_last_error` returns a status:
/// `MA_OK` (0), or a negative `MA_ERROR_*` code; `ma_last_error` has the
/// argument at fault and the message of the calling thread's last failure. A
/// refused call has no effect: nothing is encoded, nothing is written through
/// an out pointer, and the handles stay usable.
///
/// Handles are 32-bit (slot and generation). A zero, stale or foreign handle
/// is `MA_ERROR_INVALID_HANDLE`, never a crash. All functions may be called
/// from any thread; one pass must not be encoded by two threads at once.
///
/// Hot calls take a pass and one pointer. A tensor is a byte range of a buffer
/// with an element type; a zeroed `MATensor` means "absent".
#pragma once

#include <stdint.h>

#include "ShaderTypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with any change of a function, a struct or a code in this header.
#define MA_ABI_VERSION 12

typedef uint32_t ma_device;
typedef uint32_t ma_buffer;
typedef uint32_t ma_pass;
typedef uint32_t ma_pipeline;

enum {
  MA_OK = 0,
  MA_ERROR_INVALID_ARGUMENT = -1,    ///< a value outside its documented range
  MA_ERROR_INVALID_HANDLE = -2,      ///< zero, stale, foreign, or of another kind
  MA_ERROR_INVALID_STATE = -3,       ///< for example: encode after commit
  MA_ERROR_BUFFER_TOO_SMALL = -4,    ///< an extent leaves its tensor or buffer
  MA_ERROR_OVERFLOW = -5,            ///< a product or sum leaves 64 bits, or a cache's end
  MA_ERROR_UNSUPPORTED = -6,         ///< a combination no kernel serves; the message lists those served
  MA_ERROR_OUT_OF_MEMORY = -7,       ///< the device could not allocate
  MA_ERROR_SHADER_COMPILATION = -8,  ///< the message holds the compiler's log
  MA_ERROR_KERNEL_NOT_FOUND = -9,    ///< the message lists the known names
  MA_ERROR_DEVICE_UNAVAILABLE = -10, ///< no device, or it cannot run kernels
  MA_ERROR_EXECUTION = -11,          ///< the device reported an error while it ran a pass
};

/// What `ma_last_error` gives of the thread's last failure.
enum {
  MA_FAILURE_MESSAGE = 0,   ///< a sentence that names arguments as the caller does
  MA_FAILURE_ARGUMENT = 1,  ///< the argument at fault, for example `q`; empty where none can be named
  MA_FAILURE_FUNCTION = 2,  ///< the function that refused, for example `ma_kv_cache_copy`
};

/// Element types. Values are part of the ABI.
enum {
  MA_DTYPE_F32 = 1,
  MA_DTYPE_F16 = 2,
  MA_DTYPE_BF16 = 3,
  MA_DTYPE_U8 = 4,
  MA_DTYPE_I8 = 5,
  MA_DTYPE_U32 = 6,
  MA_DTYPE_I32 = 7,
  MA_DTYPE_BOOL = 8,
  MA_DTYPE_I16 = 9,
  MA_DTYPE_U16 = 10,
  MA_DTYPE_I64 = 11,
  MA_DTYPE_U64 = 12,
};

/// A byte range of a buffer, read as elements of one type. 24 bytes.
typedef struct MATensor {
  ma_buffer buffer;
  uint32_t dtype;
  uint64_t offset;  ///< bytes; a multiple of the element size
  uint64_t length;  ///< bytes
} MATensor;

/// What a device is and allows. 192 bytes.
typedef struct MADeviceInfo {
  char name[64];     ///< NUL-terminated UTF-8
  char backend[32];  ///< "Metal" or "SoftMetal"
  uint64_t registryID;
  uint64_t maxBufferLength;               ///< bytes
  uint64_t recommendedMaxWorkingSetSize;  ///< bytes
  uint64_t currentAllocatedSize;          ///< bytes
  uint64_t scratchLength;                 ///< bytes: states of decode's blocks, decoded codes of prefill
  uint32_t maxThreadgroupMemoryLength;    ///< bytes
  uint32_t maxThreadsPerThreadgroup[3];
  uint32_t hasUnifiedMemory;
  uint32_t simdWidth;  ///< threads of a SIMD group
  uint32_t reserved[8];
} MADeviceInfo;

/// Who sees a buffer's memory.
enum {
  MA_STORAGE_SHARED = 0,   ///< the caller and the device
  MA_STORAGE_PRIVATE = 1,  ///< the device alone: on a GPU with memory of its own that memory
};

/// States of a pass.
enum {
  MA_STATE_ENCODING = 0,
  MA_STATE_COMMITTED = 1,
  MA_STATE_COMPLETED = 2,
  MA_STATE_FAILED = 3,
};

/// How a pass is created: a sum of these.
enum {
  MA_PASS_CONCURRENT = 0,  ///< dispatches overlap; a barrier where two conflict
  MA_PASS_SERIAL = 1,      ///< each dispatch ends before the next begins
  MA_PASS_PROFILED = 4,    ///< the device's time of each dispatch is measured, and none overlap
  MA_PASS_RECORDED = 2,    ///< never committed itself: each `ma_record_run` commits a pass of what it holds
};

/// What a run of a recorded pass gives, in the order of declaration. 32 bytes.
typedef struct MARun {
  const uint32_t *scalars;  ///< a value for each scalar
  const MATensor *tensors;  ///< a replacement per tensor; zeroed: keep the recorded one
  uint32_t scalarCount;
  uint32_t tensorCount;
  uint32_t notify;  ///< 1: as `ma_pass_commit_notify`
  uint32_t reserved;
} MARun;

/// State and times of a pass, in seconds of one clock. 40 bytes.
typedef struct MAPassInfo {
  uint32_t state;       ///< MA_STATE_*
  uint32_t dispatches;  ///< encoded so far
  double gpuStartTime;  ///< 0 until completed
  double gpuEndTime;
  double openTime;      ///< when the pass was created
  double commitTime;    ///< 0 until committed
} MAPassInfo;

/// Mathematics of a source's kernels.
enum {
  MA_MATH_SAFE = 0,     ///< as IEEE 754 has it
  MA_MATH_RELAXED = 1,  ///< values are as if real; infinities and NaN are kept
  MA_MATH_FAST = 2,     ///< infinities, NaN and the order of a sum may be ignored
};

/// What the compiler of a source's kernels aims at.
enum {
  MA_OPTIMIZATION_DEFAULT = 0,  ///< speed
  MA_OPTIMIZATION_SIZE = 1,     ///< little code, compiled in less time
};

/// A macro that a source is compiled with. 16 bytes.
typedef struct MAMacro {
  const char *name;   ///< an identifier
  const char *value;  ///< what stands for it, in one line; may be empty
} MAMacro;

/// How a source is registered. 32 bytes.
typedef struct MASourceOptions {
  const MAMacro *macros;
  uint32_t macroCount;
  uint32_t mathMode;           ///< MA_MATH_*
  uint32_t languageMajor;      ///< of the language's version: 2.4, 3.0 or 3.1; both 0: 3.1
  uint32_t languageMinor;
  uint32_t replace;            ///< 1: in place of the source of the same name, if any
  uint32_t optimizationLevel;  ///< MA_OPTIMIZATION_*
} MASourceOptions;

/// A function constant of a pipeline, a scalar or a vector. 56 bytes.
typedef struct MAConstant {
  const char *name;     ///< of the constant in the source; NULL: `index` tells which
  uint32_t index;       ///< as in [[function_constant(index)]]; 0 with a name
  uint32_t dtype;       ///< MA_DTYPE_... of a component
  uint32_t components;  ///< 1 for a scalar, 2 to 4 for a vector
  uint32_t reserved;    ///< 0
  uint8_t value[32];    ///< the components without gaps, first byte first; the rest 0
} MAConstant;

/// What a pipeline allows. 16 bytes.
typedef struct MAPipelineInfo {
  uint32_t maxTotalThreadsPerThreadgroup;
  uint32_t threadExecutionWidth;
  uint32_t staticThreadgroupMemoryLength;  ///< bytes
  uint32_t reserved;
} MAPipelineInfo;

enum {
  MA_BINDING_BUFFER = 0,       ///< a buffer at an offset
  MA_BINDING_BYTES = 1,        ///< up to 4,096 bytes, copied
  MA_BINDING_THREADGROUP = 2,  ///< threadgroup memory of `length` bytes (a multiple of 16)
  MA_BINDING_USE = 3,          ///< bytes of a buffer that the kernel reaches by an address in other memory
};

enum { MA_ACCESS_READ = 1, MA_ACCESS_WRITE = 2 };

/// One argument of a generic dispatch. 40 bytes.
typedef struct MABinding {
  uint32_t index;   ///< of kind USE its place among them, for messages; a dispatch has at most 512
  uint32_t kind;    ///< MA_BINDING_*
  ma_buffer buffer; ///< kinds BUFFER and USE
  uint32_t access;  ///< kinds BUFFER and USE: MA_ACCESS_* bits
  uint64_t offset;  ///< kinds BUFFER and USE: bytes
  uint64_t length;  ///< bytes
  const void *bytes;///< kind BYTES
} MABinding;

enum {
  MA_DISPATCH_THREADGROUPS = 0,  ///< `grid` counts threadgroups
  MA_DISPATCH_THREADS = 1,       ///< `grid` counts threads; edge threadgroups may be partial
};

/// A dispatch of any registered kernel. 48 bytes.
typedef struct MAKernelDispatch {
  ma_pipeline pipeline;
  uint32_t form;  ///< MA_DISPATCH_*
  uint32_t grid[3];
  uint32_t threadsPerThreadgroup[3];
  uint32_t bindingCount;
  uint32_t reserved;
  const MABinding *bindings;
} MAKernelDispatch;

/// Arguments of `ma_copy`. 48 bytes.
/// `to` gets the bytes of `from`: both of one dtype and length, in any two places that do not overlap.
typedef struct MACopyArgs {
  MATensor from;
  MATensor to;
} MACopyArgs;

/// Arguments of `ma_kv_cache_copy`. 72 bytes.
/// src [nNew, rowSize] to cache [cacheCap, rowSize]; both bf16, f32 or f16.
typedef struct MAKvCacheCopyArgs {
  MATensor src;
  MATensor cache;
  KvCacheCopyParams params;
  uint32_t reserved;
} MAKvCacheCopyArgs;

/// Arguments of `ma_kv_cache_copy_batch`. 120 bytes.
/// K alone, or K and V together; a zeroed srcV and cacheV mean K alone.
/// src [batch, nHeads, headDim] to cache [batch, nHeads, capacity, headDim].
typedef struct MAKvCacheCopyBatchArgs {
  MATensor srcK;
  MATensor cacheK;
  MATensor srcV;
  MATensor cacheV;
  KvCacheCopyBatchParams params;
  uint32_t isSliding;  ///< 1: slot = seqPos mod capacity; 0: slot = seqPos
  uint32_t batch;      ///< at least 1
} MAKvCacheCopyBatchArgs;

/// Arguments of `ma_kv_cache_copy_seq`. 136 bytes. Streams as above;
/// src [batch, nSrcTokens, nHeads, headDim].
typedef struct MAKvCacheCopySeqArgs {
  MATensor srcK;
  MATensor cacheK;
  MATensor srcV;
  MATensor cacheV;
  KvCacheCopySeqParams params;
  uint32_t isSliding;  ///< 1: a ring; 0: a linear cache, which ends at its capacity
  uint32_t batch;      ///< at least 1
  uint32_t reserved;   ///< 0
} MAKvCacheCopySeqArgs;

/// Arguments of `ma_kv_cache_copy_head_major`. 88 bytes.
/// src [batch, nHeads, srcSeqLen, headDim] to cache [batch, nHeads, capacity, headDim].
typedef struct MAKvCacheCopyHeadMajorArgs {
  MATensor src;
  MATensor cache;
  KvCacheCopyHeadMajorParams params;
  uint32_t isSliding;  ///< 1: a ring; 0: a linear cache, which ends at its capacity
  uint32_t batch;      ///< at least 1
  uint32_t reserved;   ///< 0
} MAKvCacheCopyHeadMajorArgs;

/// How the codes of a quantized cache lie in a row: `codebook_bits` of each that are supported.
enum {
  MA_PACKING_NIBBLE = 1,  ///< 4: two codes to a byte, the even index in the low half
  MA_PACKING_BYTE = 2,    ///< 5, 6 or 8: one code to a byte
  MA_PACKING_DENSE = 3,   ///< 2, 3, 5 or 6: code i in bits i * codebook_bits and up of the row, lowest bit first
};

/// Arguments of `ma_hadamard_quantize_kv`. 240 bytes.
/// One token, src f32, f16 or bf16 [batch, num_kv_heads, head_dim], of K or of K and V in one dtype (srcV, packedV and
/// normsV zeroed mean K alone), into packed u8 [batch, num_kv_heads, cache_capacity, bytes of a row] and norms f32
/// [batch, num_kv_heads, cache_capacity, max(1, head_dim / 256)]. 16-bit values are widened to f32.
/// rmsScratch f32 may be absent; it gets scaled coordinates, for K alone and
/// NIBBLE: all of them, [batch, num_kv_heads, head_dim], or the first `rmsCoordinates` of each norm, [batch,
/// num_kv_heads, norms, rmsCoordinates].
typedef struct MAHadamardQuantizeKvArgs {
  MATensor srcK;
  MATensor packedK;
  MATensor normsK;
  MATensor srcV;
  MATensor packedV;
  MATensor normsV;
  MATensor rmsScratch;
  HadamardQuantizeParams params;      ///< read with packing NIBBLE
  HadamardQuantizeHbParams hbParams;  ///< read with the others
  uint32_t packing;                   ///< MA_PACKING_*
  uint32_t batch;                     ///< at least 1
  uint32_t rmsCoordinates;            ///< 16, or 0 for all; read with rmsScratch
  uint32_t reserved;                  ///< 0
} MAHadamardQuantizeKvArgs;

/// Arguments of `ma_hadamard_quantize_kv_seq`. 304 bytes.
/// src [batch, n_src_tokens, num_kv_heads, head_dim]; streams and caches as above, or pools of pages [n_pages,
/// num_kv_heads, page_tokens, ...] with blockTable i32 [batch, pages of a sequence]. V may have a format of its own:
/// packingV and bitsV, both given, or both 0 for that of K. positions i32 may be absent. K turns as in `ma_apply_rope`
/// to f32 where rotaryDim is above 0, at head sizes with kernels of their own; else pairing and invFreq are zeroed.
typedef struct MAHadamardQuantizeKvSeqArgs {
  MATensor srcK;
  MATensor packedK;
  MATensor normsK;
  MATensor srcV;
  MATensor packedV;
  MATensor normsV;
  MATensor positions;
  MATensor blockTable;
  HadamardQuantizeSeqParams params;
  uint32_t packing;   ///< MA_PACKING_*
  uint32_t batch;     ///< at least 1
  uint32_t pairing;   ///< MA_PAIRING_*, or 0 where K does not turn
  uint32_t packingV;  ///< MA_PACKING_* of V's codes; 0: those of K
  uint32_t bitsV;     ///< of a code of V; 0: those of K
  const void *invFreq;  ///< f32 [rotaryDim / 2]: radians from one position to the next, of each pair; copied
  uint64_t invFreqCount;  ///< elements of it, rotaryDim / 2
} MAHadamardQuantizeKvSeqArgs;

/// Arguments of `ma_hadamard_dequantize_kv`. 192 bytes.
/// out [batch, num_kv_heads, n_tokens, head_dim], f32, f16 or bf16; streams and caches as above.
typedef struct MAHadamardDequantizeKvArgs {
  MATensor packedK;
  MATensor normsK;
  MATensor outK;
  MATensor packedV;
  MATensor normsV;
  MATensor outV;
  HadamardDequantizeParams params;
  uint32_t packing;   ///< MA_PACKING_*
  uint32_t batch;     ///< at least 1
  uint32_t reserved;  ///< 0
} MAHadamardDequantizeKvArgs;

/// Which coordinates of a head vector turn together.
enum {
  MA_PAIRING_HALF = 1,         ///< i and i + rotaryDim / 2
  MA_PAIRING_INTERLEAVED = 2,  ///< 2 i and 2 i + 1
};

/// Arguments of `ma_apply_rope`. 184 bytes.
/// q, or q and k (a zeroed k and outK mean q alone), to outQ and outK of the same shapes: f32, f16 or bf16, with one
/// dtype for both inputs and one for both outputs. An output may be its input. `positions` i32 [nTokens] or [batch,
/// nTokens] may be absent.
typedef struct MAApplyRopeArgs {
  MATensor q;
  MATensor outQ;
  MATensor k;
  MATensor outK;
  MATensor positions;
  RopeParams params;
  uint32_t pairing;      ///< MA_PAIRING_*
  uint32_t reserved;     ///< 0
  const void *invFreq;   ///< f32 [rotaryDim / 2]: radians from one position to the next, of each pair; copied
  uint64_t invFreqCount; ///< elements of it, rotaryDim / 2
} MAApplyRopeArgs;

/// Arguments of `ma_kv_cache_append`. 224 bytes.
/// K alone, or K and V together; a zeroed srcV and cacheV mean K alone. src [batch, nTokens, nHeads, headDim] to cache
/// [batch, nHeads, capacity, headDim], each f32, f16 or bf16; with a blockTable i32 [batch, capacity / pageTokens] to
/// pages [nPages, nHeads, pageTokens, headDim]. `positions` i32 [nTokens] or [batch, nTokens] may be absent; a token at
/// one below 0 or beyond the last slot is left out, and no two of a sequence go to one slot. K turns as in
/// `ma_apply_rope` where rotaryDim is above 0; else pairing and invFreq are zeroed.
typedef struct MAKvCacheAppendArgs {
  MATensor srcK;
  MATensor cacheK;
  MATensor srcV;
  MATensor cacheV;
  MATensor positions;
  MATensor blockTable;
  KvCacheAppendParams params;
  uint32_t pairing;  ///< MA_PAIRING_*, or 0 where K does not turn
  uint32_t reserved;  ///< 0
  const void *invFreq;  ///< f32 [rotaryDim / 2]: radians from one position to the next, of each pair; copied
  uint64_t invFreqCount;  ///< elements of it, rotaryDim / 2
} MAKvCacheAppendArgs;

/// Arguments of `ma_flash_attn_prefill`. 720 bytes.
/// `mask` and `tileClasses` may be absent; `maskParams` is read only with a mask. All that follows `reserved` may be
/// absent, or 0: lse f32 by L_strides, sinks and alibiSlopes f32 [H], seqLens i32 [B] in place of kL. With seqOffsets
/// i32 [B + 1] q and out are [qL, H, D], the rows seqOffsets[b] to seqOffsets[b + 1] - 1 being those of sequence b, and
/// with packedKeys so are K and V, kL being qL. With a blockTable i32 [B, capacity / page_tokens] K and V are pages,
/// whose strides are (page, head, token). K and V may be codes u8 with norms f32, as `ma_flash_attn_decode` has them,
/// in place of which K_strides and V_strides are not read. With a tail, tailK and tailV [slots, nKvHeads, D] in the
/// dtype of q, K and V hold the older keys of the one sequence; `tail` is read only with it.
typedef struct MAFlashAttnPrefillArgs {
  MATensor q;
  MATensor k;
  MATensor v;
  MATensor out;
  MATensor mask;
  MATensor tileClasses;
  AttnParams params;
  AttnMaskParams maskParams;
  uint32_t nKvHeads;
  uint32_t causal;  ///< 1: key j attends query row i when j <= i + qL_off
  uint32_t packedKeys;  ///< 1: with seqOffsets, K and V lie as q does
  uint32_t reserved;  ///< 0
  MATensor lse;
  MATensor sinks;
  MATensor alibiSlopes;
  MATensor seqLens;
  MATensor seqOffsets;
  MATensor blockTable;
  AttnOptionParams options;
  MATensor normsK;
  MATensor normsV;
  AttnCodeParams codes;
  uint32_t packingK;  ///< MA_PACKING_* of codes; 0: K is dense
  uint32_t bitsK;  ///< of a code; 0: K is dense
  uint32_t packingV;
  uint32_t bitsV;
  MATensor tailK;
  MATensor tailV;
  AttnTailParams tail;
} MAFlashAttnPrefillArgs;

/// Arguments of `ma_flash_attn_decode`. 392 bytes.
/// q, out [batch, n_heads, n_q, head_dim], each f32, f16 or bf16. K and V, each dense [batch, n_kv_heads, capacity,
/// head_dim] of f32, f16 or bf16, or codes u8 [batch, n_kv_heads, capacity, bytes of a row] with norms f32 [batch,
/// n_kv_heads, capacity, max(1, head_dim / 256)]; with a blockTable i32 [batch, capacity / page_tokens] pages
/// [n_pages, n_kv_heads, page_tokens, ...] instead. With head_dim 576, f16 or bf16, v is absent: V is the first 512
/// columns of K, which out has. All else may be absent: lse f32 [batch, n_heads, n_q], seqLens i32 [batch] in
/// place of seq_len, sinks and alibiSlopes f32 [n_heads], treeMask u32 [batch, n_q].
typedef struct MAFlashAttnDecodeArgs {
  MATensor q;
  MATensor k;
  MATensor normsK;
  MATensor v;
  MATensor normsV;
  MATensor out;
  MATensor lse;
  MATensor seqLens;
  MATensor blockTable;
  MATensor sinks;
  MATensor alibiSlopes;
  MATensor treeMask;
  FlashAttnDecodeParams params;
  uint32_t batch;
  uint32_t packingK;  ///< MA_PACKING_* of codes; 0: K is dense
  uint32_t bitsK;  ///< of a code; 0: K is dense
  uint32_t packingV;
  uint32_t bitsV;
  uint32_t reserved;  ///< 0
} MAFlashAttnDecodeArgs;

/// Arguments of `ma_merge_attention`. 456 bytes.
/// Parts 0 to 7, the first ones given: out [rows, row_size], all f32, f16 or bf16, and lse f32 [rows]. `lse` of the
/// result may be absent.
typedef struct MAMergeAttentionArgs {
  MATensor out0;
  MATensor lse0;
  MATensor out1;
  MATensor lse1;
  MATensor out2;
  MATensor lse2;
  MATensor out3;
  MATensor lse3;
  MATensor out4;
  MATensor lse4;
  MATensor out5;
  MATensor lse5;
  MATensor out6;
  MATensor lse6;
  MATensor out7;
  MATensor lse7;
  MATensor out;
  MATensor lse;
  MergeAttentionParams params;
} MAMergeAttentionArgs;

/// Arguments of `ma_build_mask`. 40 bytes.
/// `mask` [qL, kL] is bf16 or f16 (0 attends, -infinity blocks) or bool (1
/// attends, 0 blocks). Row i attends keys j <= p = i + qL_off; with a window,
/// of these only p - window < j.
typedef struct MABuildMaskArgs {
  MATensor mask;
  BuildMaskParams params;
} MABuildMaskArgs;

/// Arguments of `ma_classify_mask_tiles`. 104 bytes.
/// `mask` as in `ma_flash_attn_prefill`, `tileClasses` u8 [planes, NQ, NK]: one
/// plane for each plane of the mask, whose batches (1 where that stride is 0)
/// times heads (likewise) they are.
typedef struct MAClassifyMaskTilesArgs {
  MATensor mask;
  MATensor tileClasses;
  ClassifyMaskParams params;
  uint32_t headDim;  ///< of the attention that will read the classes; it decides the tiles
  uint32_t reserved;
} MAClassifyMaskTilesArgs;

/// The library's `MA_ABI_VERSION`.
int32_t ma_abi_version(void);

/// Copies a part of the calling thread's last failure, `MA_FAILURE_*`, into
/// `buffer` as NUL-terminated UTF-8, cut to `capacity` bytes. Returns the full
/// length in bytes without the NUL (0: no failure yet, or no such part).
/// `buffer` may be NULL when `capacity` is 0.
int32_t ma_last_error(uint32_t part, char *buffer, uint32_t capacity);

/// Tells how the caller names the arguments of functions, for messages and for
/// `MA_FAILURE_ARGUMENT`: a line `function argument name` each, or
/// `function argument name nameWithV` where the name differs when K and V are
/// both given. For the whole process; a later line replaces an earlier one.
int32_t ma_name_arguments(const char *names);

/// What each kernel family serves, as JSON: dtypes, head sizes, widths, tiles,
/// threadgroup memory and the names of its kernels.
/// Writes at most `capacity` bytes, the NUL included; `*needed` gets the full
/// length without it, so that `*needed + 1` bytes hold all.
int32_t ma_support_json(char *buffer, uint64_t capacity, uint64_t *needed);

/// The layout of every struct above and in ShaderTypes.h, as JSON, measured by
/// the compiled library: `{"abiVersion":n,"structs":[{"name","size","alignment",
/// "fields":[{"name","offset","size","type","count"}]}]}`.
/// Writes as `ma_support_json` does.
int32_t ma_layout_json(char *buffer, uint64_t capacity, uint64_t *needed);

/// Reads field `field` (an array's element `element`) of the struct `structName`
/// whose bytes are at `bytes`, as the compiled library sees it. Integers come
/// back in `*integer`, floats in `*real`. For layout tests.
int32_t ma_layout_read(const char *structName, const char *field, uint32_t element, const void *bytes, uint64_t length,
                       int64_t *integer, double *real);

/// Gives the library built-in kernels that were compiled ahead of time, in place of those beside its file: the bytes of
/// a `kernels.tar`, for a program that carries it inside. They are not copied and have to stay. An Apple GPU, which
/// compiles for itself, does without.
int32_t ma_kernels_provide(const void *archive, uint64_t length);

/// Opens the system's default device. Each open has buffers, passes and
/// pipelines of its own.
int32_t ma_device_open(ma_device *device);
/// Opens another device of the machine: an index in the system's list of devices or, on Linux, `cpu`, which has index
/// 0, or `nvidia` for the first NVIDIA GPU, which has index 1.
int32_t ma_device_open_named(const char *which, ma_device *device);
/// Waits for committed passes, then frees the device and all that it owns.
int32_t ma_device_close(ma_device device);
/// What the device is and allows, and how much it has allocated by now.
int32_t ma_device_info(ma_device device, MADeviceInfo *info);
/// Gives a socket that becomes readable when a pass sent by
/// `ma_pass_commit_notify` has ended: for an event loop to wait on. It is the
/// caller's, to read and to close; a device gives one.
int32_t ma_device_events(ma_device device, int32_t *descriptor);

/// Creates a zero-filled buffer of `length` bytes (1 to maxBufferLength) in `storage`, MA_STORAGE_*.
/// `*contents` gets its address, valid until `ma_buffer_release`, or NULL in private storage, whose bytes come and go
/// by `ma_copy` and other kernels.
int32_t ma_buffer_create(ma_device device, uint64_t length, uint32_t storage, ma_buffer *buffer, void **contents);
/// Length in bytes, and the address that `ma_buffer_create` gave.
int32_t ma_buffer_info(ma_buffer buffer, uint64_t *length, void **contents);
/// The address of the buffer's first byte as kernels see it, for pointers that lie in other memory. A dispatch that
/// follows one names the buffer by a binding of kind USE; once the buffer is released its address leads nowhere.
int32_t ma_buffer_address(ma_buffer buffer, uint64_t *address);
/// Gives the buffer back. A pass that uses it keeps its memory alive until it ends.
int32_t ma_buffer_release(ma_buffer buffer);
/// Gives what `ma_buffer_adopt` needs to find the buffer's memory, as long as
/// its handle is open: plain numbers below 2^53, to be sent to another thread. Private storage is its device's alone:
/// MA_ERROR_UNSUPPORTED.
int32_t ma_buffer_share(ma_buffer buffer, uint64_t *process, uint64_t *number);
/// Makes a buffer of `device` over the memory of another one in the same
/// process, shared by `ma_buffer_share`. The memory goes when the last buffer
/// over it does. Nothing orders what passes of several devices do in it.
int32_t ma_buffer_adopt(ma_device device, ma_buffer shared, uint64_t process, uint64_t number, ma_buffer *buffer,
                        void **contents);
/// As `ma_buffer_release`, without an error for a handle already released: for a garbage collector's callback, on any
/// thread. `buffer` is the handle itself; `contents` is not read.
int32_t ma_buffer_collected(void *contents, void *buffer);
/// Takes a hold of the buffer's memory: it stays, whatever is released or closed, until `*hold` goes to
/// `ma_hold_release`.
int32_t ma_buffer_hold(ma_buffer buffer, void **hold);
/// Ends a hold, once, on any thread: a garbage collector's callback too. `contents` is not read.
int32_t ma_hold_release(void *contents, void *hold);
/// Says that the host has written `length` bytes from `offset` on: tile classes
/// that were made from them are stale from now on.
int32_t ma_buffer_written(ma_buffer buffer, uint64_t offset, uint64_t length);

/// Registers shader source under `name`, which stands for its file in messages and in `#include "name"` of other
/// sources. Compiled on first use, by `options`; NULL: safe mathematics, version 3.1 and no macros.
/// A kernel name that another registered source already has is refused; a built-in kernel may have it. With `replace`
/// pipelines made from then on are of the new text, those that there are go on.
int32_t ma_source_register(ma_device device, const char *name, const char *source, uint64_t length,
                           const MASourceOptions *options);
/// The names of all kernels, built in and registered, one a line.
/// Writes as `ma_support_json` does.
int32_t ma_kernel_names(ma_device device, char *buffer, uint64_t capacity, uint64_t *needed);
/// Compiles (or finds) the pipeline of a kernel with function constants: of a registered source, or else built in.
int32_t ma_pipeline_create(ma_device device, const char *kernel, const MAConstant *constants, uint32_t count,
                           ma_pipeline *pipeline);
/// The same of a built-in kernel, whatever kernels of its name are registered.
int32_t ma_pipeline_create_built_in(ma_device device, const char *kernel, const MAConstant *constants, uint32_t count,
                                    ma_pipeline *pipeline);
/// Threads and threadgroup memory of a pipeline.
int32_t ma_pipeline_info(ma_pipeline pipeline, MAPipelineInfo *info);
/// What runs the kernel, as text: `GPU`, or on the software device `loop`, `vectors`, or `threads` with the reason.
/// Writes as `ma_support_json` does.
int32_t ma_pipeline_executor(ma_pipeline pipeline, char *buffer, uint64_t capacity, uint64_t *needed);
/// Gives the pipeline back. Passes that it was encoded into keep it until they end.
int32_t ma_pipeline_release(ma_pipeline pipeline);

/// Opens a pass: one command buffer that takes dispatches until it is committed. Where 60 of the device are neither
/// committed nor released, one more is MA_ERROR_INVALID_STATE.
int32_t ma_pass_create(ma_device device, uint32_t mode, ma_pass *pass);
/// Sends the pass to the device. A second commit is MA_ERROR_INVALID_STATE; so
/// is one of a pass that reads tile classes whose own pass is not committed, or
/// whose mask was written since.
int32_t ma_pass_commit(ma_pass pass);
/// The same; when the pass has ended, well or not, a byte goes to the socket of
/// `ma_device_events`. Where many bytes lie unread some are left out: look at all passes.
int32_t ma_pass_commit_notify(ma_pass pass);
/// Blocks until a committed pass has ended; MA_ERROR_EXECUTION when it failed.
int32_t ma_pass_wait(ma_pass pass);
/// State and times, without blocking. A failed pass leaves its error in ma_last_error.
int32_t ma_pass_info(ma_pass pass, MAPassInfo *info);
/// What the pass holds, as JSON: an array of `{"op","kernel","executor","form","grid",
/// "threadsPerThreadgroup","reads":[{"buffer","offset","length"}],"writes":[...],"barrierBefore"}`, of a
/// profiled pass that has completed with `"startTime"` and `"endTime"` in seconds, and `"sampledAt"`, `"dispatch"` or
/// `"stage"`. Writes as `ma_support_json` does.
int32_t ma_pass_describe(ma_pass pass, char *buffer, uint64_t capacity, uint64_t *needed);
/// The bytes that dispatch `dispatch` of the pass hands to its kernel as
/// argument `index`, with every derived field filled in: for tests, and to see
/// what another language packs. Writes up to `capacity` of them; `*needed` gets
/// their number, 0 where the argument is a buffer or absent.
int32_t ma_pass_argument_bytes(ma_pass pass, uint32_t dispatch, uint32_t index, void *buffer, uint64_t capacity,
                               uint64_t *needed);
/// Frees the pass; one in flight goes on and is freed when it ends.
int32_t ma_pass_release(ma_pass pass);

/// Declares a number of a recorded pass that each run gives, from `least` to
/// `most`; `*scalar` gets its place among them.
int32_t ma_record_scalar(ma_pass pass, const char *name, uint32_t least, uint32_t most, uint32_t *scalar);
/// Has the operation that is encoded next take its argument `argument`, an
/// integer of 32 bits, from a scalar: by its C name, or the caller's
/// (`ma_name_arguments`). `bytes[INDEX]` stands for 4 bytes of a dispatch. The
/// operation itself is encoded with a value that holds while recording. NULL
/// cancels uses pending for an operation that was never encoded.
int32_t ma_record_use(ma_pass pass, uint32_t scalar, const char *argument);
/// Declares a tensor that runs may replace, wherever operations use it or a
/// part of it, by another of the same dtype and length; `*number` gets its place.
int32_t ma_record_tensor(ma_pass pass, const char *name, const MATensor *tensor, uint32_t *number);
/// Encodes what is recorded into a new pass and commits it; `*started` gets its
/// handle, to wait for and to release. Operations that take a scalar or a
/// replaced tensor are checked again.
int32_t ma_record_run(ma_pass pass, const MARun *run, ma_pass *started);

/// Encodes a registered kernel with bindings given by the caller: one for each
/// argument that the kernel uses, and none that it does not have.
int32_t ma_encode_kernel(ma_pass pass, const MAKernelDispatch *dispatch);

/// Copies bytes from one place to another, of a buffer or of two.
int32_t ma_copy(ma_pass pass, const MACopyArgs *args);
/// Appends rows to a K or V cache.
int32_t ma_kv_cache_copy(ma_pass pass, const MAKvCacheCopyArgs *args);
/// Writes one token of all heads into head-major caches.
int32_t ma_kv_cache_copy_batch(ma_pass pass, const MAKvCacheCopyBatchArgs *args);
/// Writes a run of tokens of all heads into head-major caches.
int32_t ma_kv_cache_copy_seq(ma_pass pass, const MAKvCacheCopySeqArgs *args);
/// Writes a run of tokens from a head-major source into a head-major cache.
int32_t ma_kv_cache_copy_head_major(ma_pass pass, const MAKvCacheCopyHeadMajorArgs *args);
/// Appends tokens to dense caches, K turned by its rotary positions.
int32_t ma_kv_cache_append(ma_pass pass, const MAKvCacheAppendArgs *args);
/// Writes one token into a Hadamard-quantized cache.
int32_t ma_hadamard_quantize_kv(ma_pass pass, const MAHadamardQuantizeKvArgs *args);
/// Writes a run of tokens, without positions at most cache_capacity, into a Hadamard-quantized cache in one dispatch.
int32_t ma_hadamard_quantize_kv_seq(ma_pass pass, const MAHadamardQuantizeKvSeqArgs *args);
/// Reads a run of tokens back from a Hadamard-quantized cache.
int32_t ma_hadamard_dequantize_kv(ma_pass pass, const MAHadamardDequantizeKvArgs *args);
/// Attention over whole prompts or chunks of them, causal or not.
int32_t ma_flash_attn_prefill(ma_pass pass, const MAFlashAttnPrefillArgs *args);
/// One to 16 query rows of each sequence attend over its cache.
int32_t ma_flash_attn_decode(ma_pass pass, const MAFlashAttnDecodeArgs *args);
/// Joins results of attention over parts of the keys.
int32_t ma_merge_attention(ma_pass pass, const MAMergeAttentionArgs *args);
/// Turns pairs of coordinates by angles that grow with the position of a token.
int32_t ma_apply_rope(ma_pass pass, const MAApplyRopeArgs *args);
/// Writes a causal or sliding-window mask.
int32_t ma_build_mask(ma_pass pass, const MABuildMaskArgs *args);
/// Writes a byte for each tile of a mask: 0 blocked throughout, 1 mixed, 2 nothing masked.
int32_t ma_classify_mask_tiles(ma_pass pass, const MAClassifyMaskTilesArgs *args);

#ifdef __cplusplus
}
#endif
