import CMetalAttention

extension LayoutTable {
  /// The argument structs of the operations.
  static let operationStructs: [StructLayout] = [
    StructLayout(
      MAKvCacheCopyArgs.self,
      [
        LayoutField("src", \MAKvCacheCopyArgs.src, .structure("MATensor")),
        LayoutField("cache", \MAKvCacheCopyArgs.cache, .structure("MATensor")),
        LayoutField("params", \MAKvCacheCopyArgs.params, .structure("KvCacheCopyParams")),
        LayoutField("reserved", \MAKvCacheCopyArgs.reserved, .u32),
      ]),
    StructLayout(
      MAKvCacheCopyBatchArgs.self,
      [
        LayoutField("srcK", \MAKvCacheCopyBatchArgs.srcK, .structure("MATensor")),
        LayoutField("cacheK", \MAKvCacheCopyBatchArgs.cacheK, .structure("MATensor")),
        LayoutField("srcV", \MAKvCacheCopyBatchArgs.srcV, .structure("MATensor")),
        LayoutField("cacheV", \MAKvCacheCopyBatchArgs.cacheV, .structure("MATensor")),
        LayoutField("params", \MAKvCacheCopyBatchArgs.params, .structure("KvCacheCopyBatchParams")),
      ]),
    StructLayout(
      MAKvCacheCopySeqArgs.self,
      [
        LayoutField("srcK", \MAKvCacheCopySeqArgs.srcK, .structure("MATensor")),
        LayoutField("cacheK", \MAKvCacheCopySeqArgs.cacheK, .structure("MATensor")),
        LayoutField("srcV", \MAKvCacheCopySeqArgs.srcV, .structure("MATensor")),
        LayoutField("cacheV", \MAKvCacheCopySeqArgs.cacheV, .structure("MATensor")),
        LayoutField("params", \MAKvCacheCopySeqArgs.params, .structure("KvCacheCopySeqParams")),
      ]),
    StructLayout(
      MAKvCacheCopyHeadMajorArgs.self,
      [
        LayoutField("src", \MAKvCacheCopyHeadMajorArgs.src, .structure("MATensor")),
        LayoutField("cache", \MAKvCacheCopyHeadMajorArgs.cache, .structure("MATensor")),
        LayoutField("params", \MAKvCacheCopyHeadMajorArgs.params, .structure("KvCacheCopyHeadMajorParams")),
        LayoutField("reserved", \MAKvCacheCopyHeadMajorArgs.reserved, .u32),
      ]),
    StructLayout(
      MAFlashAttnPrefillArgs.self,
      [
        LayoutField("q", \MAFlashAttnPrefillArgs.q, .structure("MATensor")),
        LayoutField("k", \MAFlashAttnPrefillArgs.k, .structure("MATensor")),
        LayoutField("v", \MAFlashAttnPrefillArgs.v, .structure("MATensor")),
        LayoutField("out", \MAFlashAttnPrefillArgs.out, .structure("MATensor")),
        LayoutField("mask", \MAFlashAttnPrefillArgs.mask, .structure("MATensor")),
        LayoutField("tileClasses", \MAFlashAttnPrefillArgs.tileClasses, .structure("MATensor")),
        LayoutField("params", \MAFlashAttnPrefillArgs.params, .structure("AttnParams")),
        LayoutField("maskParams", \MAFlashAttnPrefillArgs.maskParams, .structure("AttnMaskParams")),
        LayoutField("nKvHeads", \MAFlashAttnPrefillArgs.nKvHeads, .u32),
        LayoutField("causal", \MAFlashAttnPrefillArgs.causal, .u32),
        LayoutField("reserved", \MAFlashAttnPrefillArgs.reserved, .u32, count: 2),
      ]),
    StructLayout(
      MABuildMaskArgs.self,
      [
        LayoutField("mask", \MABuildMaskArgs.mask, .structure("MATensor")),
        LayoutField("params", \MABuildMaskArgs.params, .structure("BuildMaskParams")),
      ]),
    StructLayout(
      MAClassifyMaskTilesArgs.self,
      [
        LayoutField("mask", \MAClassifyMaskTilesArgs.mask, .structure("MATensor")),
        LayoutField("tileClasses", \MAClassifyMaskTilesArgs.tileClasses, .structure("MATensor")),
        LayoutField("params", \MAClassifyMaskTilesArgs.params, .structure("ClassifyMaskParams")),
        LayoutField("headDim", \MAClassifyMaskTilesArgs.headDim, .u32),
        LayoutField("reserved", \MAClassifyMaskTilesArgs.reserved, .u32),
      ]),
  ]
}
