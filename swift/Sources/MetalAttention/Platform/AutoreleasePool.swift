#if canImport(ObjectiveC)
  import ObjectiveC

  /// Runs `body` in an autorelease pool: a foreign caller has none, and what
  /// Metal autoreleases would stay alive for as long as its thread.
  func withAutoreleasePool<Result>(_ body: () -> Result) -> Result {
    autoreleasepool(invoking: body)
  }
#else
  @inline(__always)
  func withAutoreleasePool<Result>(_ body: () -> Result) -> Result {
    body()
  }
#endif
