#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A text for each part of a failure, which each thread has for itself.
enum ThreadText {
  /// The slots hold C strings from `strdup`, freed when their thread ends.
  private static let keys: [pthread_key_t] = FailurePart.allCases.map { _ in
    var key = pthread_key_t()
    pthread_key_create(&key) { free($0) }
    return key
  }

  static func set(_ text: String, as part: FailurePart) {
    let key = keys[Int(part.rawValue)]
    let previous = pthread_getspecific(key)
    pthread_setspecific(key, strdup(text))
    free(previous)
  }

  /// Calls `body` with the UTF-8 bytes of the thread's text, without the NUL.
  static func withBytes<Result>(of part: FailurePart, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let text = pthread_getspecific(keys[Int(part.rawValue)]) else {
      return body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    return body(UnsafeRawBufferPointer(start: text, count: strlen(text.assumingMemoryBound(to: CChar.self))))
  }
}
