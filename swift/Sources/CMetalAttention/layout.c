#include <assert.h>

#include "metal_attention.h"

// The sizes that the header states. Callers in other languages pack these
// structs by hand, so that a change of layout must not pass unseen.
static_assert(sizeof(KvCacheCopyParams) == 20, "KvCacheCopyParams");
static_assert(sizeof(KvCacheCopyBatchParams) == 16, "KvCacheCopyBatchParams");
static_assert(sizeof(KvCacheCopySeqParams) == 24, "KvCacheCopySeqParams");
static_assert(sizeof(KvCacheCopyHeadMajorParams) == 28, "KvCacheCopyHeadMajorParams");
static_assert(sizeof(HadamardQuantizeParams) == 28, "HadamardQuantizeParams");
static_assert(sizeof(HadamardQuantizeHbParams) == 28, "HadamardQuantizeHbParams");
static_assert(sizeof(HadamardQuantizeSeqParams) == 36, "HadamardQuantizeSeqParams");
static_assert(sizeof(HadamardDequantizeParams) == 36, "HadamardDequantizeParams");
static_assert(sizeof(AttnParams) == 160, "AttnParams");
static_assert(sizeof(AttnMaskParams) == 24, "AttnMaskParams");
static_assert(sizeof(MATensor) == 24, "MATensor");
static_assert(sizeof(MADeviceInfo) == 192, "MADeviceInfo");
static_assert(sizeof(MAPassInfo) == 24, "MAPassInfo");
static_assert(sizeof(MAConstant) == 48, "MAConstant");
static_assert(sizeof(MAPipelineInfo) == 16, "MAPipelineInfo");
static_assert(sizeof(MABinding) == 40, "MABinding");
static_assert(sizeof(MAKernelDispatch) == 48, "MAKernelDispatch");
static_assert(sizeof(MAKvCacheCopyArgs) == 72, "MAKvCacheCopyArgs");
static_assert(sizeof(MAKvCacheCopyBatchArgs) == 112, "MAKvCacheCopyBatchArgs");
static_assert(sizeof(MAKvCacheCopySeqArgs) == 120, "MAKvCacheCopySeqArgs");
static_assert(sizeof(MAKvCacheCopyHeadMajorArgs) == 80, "MAKvCacheCopyHeadMajorArgs");
static_assert(sizeof(MAHadamardQuantizeKvArgs) == 232, "MAHadamardQuantizeKvArgs");
static_assert(sizeof(MAHadamardQuantizeKvSeqArgs) == 184, "MAHadamardQuantizeKvSeqArgs");
static_assert(sizeof(MAHadamardDequantizeKvArgs) == 184, "MAHadamardDequantizeKvArgs");
static_assert(sizeof(MAFlashAttnPrefillArgs) == 344, "MAFlashAttnPrefillArgs");
