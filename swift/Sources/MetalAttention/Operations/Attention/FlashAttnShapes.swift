import CMetalAttention

/// The extents of the tensors of a prefill, its numbers having been checked.
struct FlashAttnShapes {
  /// Of q and out, and of a mask.
  let queries: (batch: Int32, heads: Int32, rows: Int32)
  /// Of K and V, as far as keys are in use.
  let keys: (batch: Int32, heads: Int32, rows: Int32)
  /// Of the block table; 0 without pages.
  let pagesOfSequence: Int32

  @inline(__always)
  init(_ args: MAFlashAttnPrefillArgs, hasOffsets: Bool) {
    let params = args.params
    let options = args.options
    let kvHeads = Int32(truncatingIfNeeded: args.nKvHeads)
    queries = (hasOffsets ? 1 : params.B, params.H, params.qL)
    if options.page_tokens > 0 {
      keys = (options.n_pages, kvHeads, options.page_tokens)
      pagesOfSequence = options.capacity / options.page_tokens
    } else {
      let rows = options.is_sliding != 0 ? min(params.kL, options.capacity) : params.kL
      keys = (args.packedKeys != 0 ? 1 : params.B, kvHeads, rows)
      pagesOfSequence = 0
    }
  }
}
