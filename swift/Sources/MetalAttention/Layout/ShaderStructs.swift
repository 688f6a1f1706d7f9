import CMetalAttention

extension LayoutTable {
  /// The structs of `ShaderTypes.h`.
  static let shaderStructs: [StructLayout] = [
    StructLayout(
      KvCacheCopyParams.self,
      [
        LayoutField("writePos", \KvCacheCopyParams.writePos, .u32),
        LayoutField("rowSize", \KvCacheCopyParams.rowSize, .u32),
        LayoutField("nNew", \KvCacheCopyParams.nNew, .u32),
        LayoutField("cacheCap", \KvCacheCopyParams.cacheCap, .u32),
        LayoutField("isSliding", \KvCacheCopyParams.isSliding, .u32),
      ]),
    StructLayout(
      KvCacheCopyBatchParams.self,
      [
        LayoutField("nHeads", \KvCacheCopyBatchParams.nHeads, .u32),
        LayoutField("headDim", \KvCacheCopyBatchParams.headDim, .u32),
        LayoutField("capacity", \KvCacheCopyBatchParams.capacity, .u32),
        LayoutField("seqPos", \KvCacheCopyBatchParams.seqPos, .u32),
      ]),
    StructLayout(
      KvCacheCopySeqParams.self,
      [
        LayoutField("nHeads", \KvCacheCopySeqParams.nHeads, .u32),
        LayoutField("headDim", \KvCacheCopySeqParams.headDim, .u32),
        LayoutField("capacity", \KvCacheCopySeqParams.capacity, .u32),
        LayoutField("seqPosStart", \KvCacheCopySeqParams.seqPosStart, .u32),
        LayoutField("nTokens", \KvCacheCopySeqParams.nTokens, .u32),
        LayoutField("srcTokOffset", \KvCacheCopySeqParams.srcTokOffset, .u32),
      ]),
    StructLayout(
      KvCacheCopyHeadMajorParams.self,
      [
        LayoutField("nHeads", \KvCacheCopyHeadMajorParams.nHeads, .u32),
        LayoutField("headDim", \KvCacheCopyHeadMajorParams.headDim, .u32),
        LayoutField("capacity", \KvCacheCopyHeadMajorParams.capacity, .u32),
        LayoutField("seqPosStart", \KvCacheCopyHeadMajorParams.seqPosStart, .u32),
        LayoutField("nTokens", \KvCacheCopyHeadMajorParams.nTokens, .u32),
        LayoutField("srcTokOffset", \KvCacheCopyHeadMajorParams.srcTokOffset, .u32),
        LayoutField("srcSeqLen", \KvCacheCopyHeadMajorParams.srcSeqLen, .u32),
      ]),
    StructLayout(
      HadamardQuantizeParams.self,
      [
        LayoutField("head_dim", \HadamardQuantizeParams.head_dim, .u32),
        LayoutField("num_kv_heads", \HadamardQuantizeParams.num_kv_heads, .u32),
        LayoutField("write_pos", \HadamardQuantizeParams.write_pos, .u32),
        LayoutField("cache_capacity", \HadamardQuantizeParams.cache_capacity, .u32),
        LayoutField("is_sliding", \HadamardQuantizeParams.is_sliding, .u32),
        LayoutField("scale_factor_d512", \HadamardQuantizeParams.scale_factor_d512, .f32),
        LayoutField("rms_probe_enabled", \HadamardQuantizeParams.rms_probe_enabled, .u32),
      ]),
    StructLayout(
      HadamardQuantizeHbParams.self,
      [
        LayoutField("head_dim", \HadamardQuantizeHbParams.head_dim, .u32),
        LayoutField("num_kv_heads", \HadamardQuantizeHbParams.num_kv_heads, .u32),
        LayoutField("write_pos", \HadamardQuantizeHbParams.write_pos, .u32),
        LayoutField("cache_capacity", \HadamardQuantizeHbParams.cache_capacity, .u32),
        LayoutField("is_sliding", \HadamardQuantizeHbParams.is_sliding, .u32),
        LayoutField("scale_factor_d512", \HadamardQuantizeHbParams.scale_factor_d512, .f32),
        LayoutField("codebook_bits", \HadamardQuantizeHbParams.codebook_bits, .u32),
      ]),
    StructLayout(
      HadamardQuantizeSeqParams.self,
      [
        LayoutField("head_dim", \HadamardQuantizeSeqParams.head_dim, .u32),
        LayoutField("num_kv_heads", \HadamardQuantizeSeqParams.num_kv_heads, .u32),
        LayoutField("write_pos_start", \HadamardQuantizeSeqParams.write_pos_start, .u32),
        LayoutField("cache_capacity", \HadamardQuantizeSeqParams.cache_capacity, .u32),
        LayoutField("is_sliding", \HadamardQuantizeSeqParams.is_sliding, .u32),
        LayoutField("scale_factor_d512", \HadamardQuantizeSeqParams.scale_factor_d512, .f32),
        LayoutField("codebook_bits", \HadamardQuantizeSeqParams.codebook_bits, .u32),
        LayoutField("n_tokens", \HadamardQuantizeSeqParams.n_tokens, .u32),
        LayoutField("src_tok_offset", \HadamardQuantizeSeqParams.src_tok_offset, .u32),
      ]),
    StructLayout(
      HadamardDequantizeParams.self,
      [
        LayoutField("head_dim", \HadamardDequantizeParams.head_dim, .u32),
        LayoutField("num_kv_heads", \HadamardDequantizeParams.num_kv_heads, .u32),
        LayoutField("read_pos_start", \HadamardDequantizeParams.read_pos_start, .u32),
        LayoutField("cache_capacity", \HadamardDequantizeParams.cache_capacity, .u32),
        LayoutField("is_sliding", \HadamardDequantizeParams.is_sliding, .u32),
        LayoutField("scale_factor_d512", \HadamardDequantizeParams.scale_factor_d512, .f32),
        LayoutField("codebook_bits", \HadamardDequantizeParams.codebook_bits, .u32),
        LayoutField("n_tokens", \HadamardDequantizeParams.n_tokens, .u32),
        LayoutField("out_dtype", \HadamardDequantizeParams.out_dtype, .u32),
      ]),
    StructLayout(
      AttnParams.self,
      [
        LayoutField("B", \AttnParams.B, .i32),
        LayoutField("H", \AttnParams.H, .i32),
        LayoutField("D", \AttnParams.D, .i32),
        LayoutField("qL", \AttnParams.qL, .i32),
        LayoutField("kL", \AttnParams.kL, .i32),
        LayoutField("gqa_factor", \AttnParams.gqa_factor, .i32),
        LayoutField("scale", \AttnParams.scale, .f32),
        LayoutField("softcapping", \AttnParams.softcapping, .f32),
        LayoutField("NQ", \AttnParams.NQ, .i32),
        LayoutField("NK", \AttnParams.NK, .i32),
        LayoutField("NQ_aligned", \AttnParams.NQ_aligned, .i32),
        LayoutField("NK_aligned", \AttnParams.NK_aligned, .i32),
        LayoutField("qL_rem", \AttnParams.qL_rem, .i32),
        LayoutField("kL_rem", \AttnParams.kL_rem, .i32),
        LayoutField("qL_off", \AttnParams.qL_off, .i32),
        LayoutField("_pad", \AttnParams._pad, .i32),
        LayoutField("Q_strides", \AttnParams.Q_strides, .i64, count: 3),
        LayoutField("K_strides", \AttnParams.K_strides, .i64, count: 3),
        LayoutField("V_strides", \AttnParams.V_strides, .i64, count: 3),
        LayoutField("O_strides", \AttnParams.O_strides, .i64, count: 3),
      ]),
    StructLayout(
      AttnMaskParams.self,
      [
        LayoutField("M_strides", \AttnMaskParams.M_strides, .i64, count: 3)
      ]),
    StructLayout(
      BuildMaskParams.self,
      [
        LayoutField("qL", \BuildMaskParams.qL, .i32),
        LayoutField("kL", \BuildMaskParams.kL, .i32),
        LayoutField("qL_off", \BuildMaskParams.qL_off, .i32),
        LayoutField("window", \BuildMaskParams.window, .i32),
      ]),
    StructLayout(
      ClassifyMaskParams.self,
      [
        LayoutField("B", \ClassifyMaskParams.B, .i32),
        LayoutField("H", \ClassifyMaskParams.H, .i32),
        LayoutField("qL", \ClassifyMaskParams.qL, .i32),
        LayoutField("kL", \ClassifyMaskParams.kL, .i32),
        LayoutField("NQ", \ClassifyMaskParams.NQ, .i32),
        LayoutField("NK", \ClassifyMaskParams.NK, .i32),
        LayoutField("M_strides", \ClassifyMaskParams.M_strides, .i64, count: 3),
      ]),
  ]
}
