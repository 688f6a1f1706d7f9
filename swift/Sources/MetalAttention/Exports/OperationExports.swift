import CMetalAttention

/// The body of an exported operation: reads the arguments, and encodes them
/// into the pass with `body`.
@inline(__always)
private func encode<Args: BitwiseCopyable>(
  _ function: StaticString, _ args: UnsafePointer<Args>?, into pass: UInt32,
  _ body: (Args, Pass) throws(StatusError) -> PipelineSlot?
) -> Int32 {
  status(function) { () throws(StatusError) in
    let args = try read(args, "args")
    try encode(into: pass) { (pass) throws(StatusError) in try body(args, pass) }
  }
}

#if compiler(>=6.3)
  @c(ma_encode_kernel)
#else
  @_cdecl("ma_encode_kernel")
#endif
public func encodeKernel(pass: UInt32, dispatch: UnsafePointer<MAKernelDispatch>?) -> Int32 {
  status("ma_encode_kernel") { () throws(StatusError) in
    let dispatch = try read(dispatch, "dispatch")
    try encode(into: pass) { (pass) throws(StatusError) in
      try KernelDispatch.encode(dispatch, into: pass)
      return nil
    }
  }
}

#if compiler(>=6.3)
  @c(ma_kv_cache_copy)
#else
  @_cdecl("ma_kv_cache_copy")
#endif
public func kvCacheCopy(pass: UInt32, args: UnsafePointer<MAKvCacheCopyArgs>?) -> Int32 {
  encode("ma_kv_cache_copy", args, into: pass, KvCacheCopy.encode)
}

#if compiler(>=6.3)
  @c(ma_kv_cache_copy_batch)
#else
  @_cdecl("ma_kv_cache_copy_batch")
#endif
public func kvCacheCopyBatch(pass: UInt32, args: UnsafePointer<MAKvCacheCopyBatchArgs>?) -> Int32 {
  encode("ma_kv_cache_copy_batch", args, into: pass, KvCacheCopyBatch.encode)
}

#if compiler(>=6.3)
  @c(ma_kv_cache_copy_seq)
#else
  @_cdecl("ma_kv_cache_copy_seq")
#endif
public func kvCacheCopySeq(pass: UInt32, args: UnsafePointer<MAKvCacheCopySeqArgs>?) -> Int32 {
  encode("ma_kv_cache_copy_seq", args, into: pass, KvCacheCopySeq.encode)
}

#if compiler(>=6.3)
  @c(ma_kv_cache_copy_head_major)
#else
  @_cdecl("ma_kv_cache_copy_head_major")
#endif
public func kvCacheCopyHeadMajor(pass: UInt32, args: UnsafePointer<MAKvCacheCopyHeadMajorArgs>?) -> Int32 {
  encode("ma_kv_cache_copy_head_major", args, into: pass, KvCacheCopyHeadMajor.encode)
}

#if compiler(>=6.3)
  @c(ma_hadamard_quantize_kv)
#else
  @_cdecl("ma_hadamard_quantize_kv")
#endif
public func hadamardQuantizeKv(pass: UInt32, args: UnsafePointer<MAHadamardQuantizeKvArgs>?) -> Int32 {
  encode("ma_hadamard_quantize_kv", args, into: pass, HadamardQuantizeKv.encode)
}

#if compiler(>=6.3)
  @c(ma_hadamard_quantize_kv_seq)
#else
  @_cdecl("ma_hadamard_quantize_kv_seq")
#endif
public func hadamardQuantizeKvSeq(pass: UInt32, args: UnsafePointer<MAHadamardQuantizeKvSeqArgs>?) -> Int32 {
  encode("ma_hadamard_quantize_kv_seq", args, into: pass, HadamardQuantizeKvSeq.encode)
}

#if compiler(>=6.3)
  @c(ma_hadamard_dequantize_kv)
#else
  @_cdecl("ma_hadamard_dequantize_kv")
#endif
public func hadamardDequantizeKv(pass: UInt32, args: UnsafePointer<MAHadamardDequantizeKvArgs>?) -> Int32 {
  encode("ma_hadamard_dequantize_kv", args, into: pass, HadamardDequantizeKv.encode)
}

#if compiler(>=6.3)
  @c(ma_flash_attn_prefill)
#else
  @_cdecl("ma_flash_attn_prefill")
#endif
public func flashAttnPrefill(pass: UInt32, args: UnsafePointer<MAFlashAttnPrefillArgs>?) -> Int32 {
  encode("ma_flash_attn_prefill", args, into: pass, FlashAttnPrefill.encode)
}

#if compiler(>=6.3)
  @c(ma_build_mask)
#else
  @_cdecl("ma_build_mask")
#endif
public func buildMask(pass: UInt32, args: UnsafePointer<MABuildMaskArgs>?) -> Int32 {
  encode("ma_build_mask", args, into: pass, BuildMask.encode)
}

#if compiler(>=6.3)
  @c(ma_classify_mask_tiles)
#else
  @_cdecl("ma_classify_mask_tiles")
#endif
public func classifyMaskTiles(pass: UInt32, args: UnsafePointer<MAClassifyMaskTilesArgs>?) -> Int32 {
  encode("ma_classify_mask_tiles", args, into: pass, ClassifyMaskTiles.encode)
}
