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
      MAHadamardQuantizeKvArgs.self,
      [
        LayoutField("srcK", \MAHadamardQuantizeKvArgs.srcK, .structure("MATensor")),
        LayoutField("packedK", \MAHadamardQuantizeKvArgs.packedK, .structure("MATensor")),
        LayoutField("normsK", \MAHadamardQuantizeKvArgs.normsK, .structure("MATensor")),
        LayoutField("srcV", \MAHadamardQuantizeKvArgs.srcV, .structure("MATensor")),
        LayoutField("packedV", \MAHadamardQuantizeKvArgs.packedV, .structure("MATensor")),
        LayoutField("normsV", \MAHadamardQuantizeKvArgs.normsV, .structure("MATensor")),
        LayoutField("rmsScratch", \MAHadamardQuantizeKvArgs.rmsScratch, .structure("MATensor")),
        LayoutField("params", \MAHadamardQuantizeKvArgs.params, .structure("HadamardQuantizeParams")),
        LayoutField("hbParams", \MAHadamardQuantizeKvArgs.hbParams, .structure("HadamardQuantizeHbParams")),
        LayoutField("packing", \MAHadamardQuantizeKvArgs.packing, .u32),
        LayoutField("reserved", \MAHadamardQuantizeKvArgs.reserved, .u32),
      ]),
    StructLayout(
      MAHadamardQuantizeKvSeqArgs.self,
      [
        LayoutField("srcK", \MAHadamardQuantizeKvSeqArgs.srcK, .structure("MATensor")),
        LayoutField("packedK", \MAHadamardQuantizeKvSeqArgs.packedK, .structure("MATensor")),
        LayoutField("normsK", \MAHadamardQuantizeKvSeqArgs.normsK, .structure("MATensor")),
        LayoutField("srcV", \MAHadamardQuantizeKvSeqArgs.srcV, .structure("MATensor")),
        LayoutField("packedV", \MAHadamardQuantizeKvSeqArgs.packedV, .structure("MATensor")),
        LayoutField("normsV", \MAHadamardQuantizeKvSeqArgs.normsV, .structure("MATensor")),
        LayoutField("params", \MAHadamardQuantizeKvSeqArgs.params, .structure("HadamardQuantizeSeqParams")),
        LayoutField("packing", \MAHadamardQuantizeKvSeqArgs.packing, .u32),
      ]),
    StructLayout(
      MAHadamardDequantizeKvArgs.self,
      [
        LayoutField("packedK", \MAHadamardDequantizeKvArgs.packedK, .structure("MATensor")),
        LayoutField("normsK", \MAHadamardDequantizeKvArgs.normsK, .structure("MATensor")),
        LayoutField("outK", \MAHadamardDequantizeKvArgs.outK, .structure("MATensor")),
        LayoutField("packedV", \MAHadamardDequantizeKvArgs.packedV, .structure("MATensor")),
        LayoutField("normsV", \MAHadamardDequantizeKvArgs.normsV, .structure("MATensor")),
        LayoutField("outV", \MAHadamardDequantizeKvArgs.outV, .structure("MATensor")),
        LayoutField("params", \MAHadamardDequantizeKvArgs.params, .structure("HadamardDequantizeParams")),
        LayoutField("packing", \MAHadamardDequantizeKvArgs.packing, .u32),
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
