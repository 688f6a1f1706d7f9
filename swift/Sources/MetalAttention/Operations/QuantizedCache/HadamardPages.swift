import CMetalAttention

/// The pool of pages [n_pages, num_kv_heads, page_tokens, ...] of a quantized cache.
struct HadamardPages {
  /// Slots of a page.
  let tokens: UInt32
  /// Heads of all pages.
  let heads: UInt32
  private let count: UInt32
  private let headsOfPage: UInt32

  /// nil where the cache is none; `hasTable` says whether the call has a block table.
  init?(_ params: HadamardQuantizeSeqParams, hasTable: Bool) throws(StatusError) {
    try BlockTable.checkPages(
      of: params.page_tokens, "page_tokens", pool: params.n_pages, "n_pages", capacity: params.cache_capacity,
      "cache_capacity", hasTable: hasTable)
    if !hasTable { return nil }
    let (heads, overflow) = params.n_pages.multipliedReportingOverflow(by: params.num_kv_heads)
    try require(
      !overflow, StatusCode.overflow,
      "\(arg: "n_pages") \(params.n_pages) x \(arg: "num_kv_heads") \(params.num_kv_heads) exceeds \(UInt32.max)")
    tokens = params.page_tokens
    self.heads = heads
    count = params.n_pages
    headsOfPage = params.num_kv_heads
  }

  /// For messages.
  var formula: Sentence {
    "\(arg: "n_pages") \(count) x \(arg: "num_kv_heads") \(headsOfPage) x \(arg: "page_tokens") \(tokens)"
  }
}
