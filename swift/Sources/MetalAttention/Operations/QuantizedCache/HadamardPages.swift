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
    try require(
      (params.page_tokens != 0) == hasTable, StatusCode.invalidArgument,
      "\(TensorName.blockTable) and \(arg: "page_tokens") \(params.page_tokens) go together: both, or neither")
    guard hasTable else {
      try require(
        params.n_pages == 0, StatusCode.invalidArgument,
        "\(arg: "n_pages") is \(params.n_pages), but \(TensorName.blockTable) is absent; it is 0 then")
      return nil
    }
    try require(
      params.cache_capacity % params.page_tokens == 0, StatusCode.invalidArgument,
      "\(arg: "cache_capacity") \(params.cache_capacity) is no whole number of pages of \(arg: "page_tokens") \(params.page_tokens)"
    )
    let (heads, overflow) = params.n_pages.multipliedReportingOverflow(by: params.num_kv_heads)
    try require(
      !overflow && params.n_pages > 0, StatusCode.overflow,
      "\(arg: "n_pages") \(params.n_pages) x \(arg: "num_kv_heads") \(params.num_kv_heads) is not from 1 to \(UInt32.max)"
    )
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
