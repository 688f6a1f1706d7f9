#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A text that each thread has for itself.
enum ThreadMessage {
  /// The slot holds a C string from `strdup`, freed when its thread ends.
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { free($0) }
    return key
  }()

  static func set(_ text: String) {
    let previous = pthread_getspecific(key)
    pthread_setspecific(key, strdup(text))
    free(previous)
  }

  /// Calls `body` with the UTF-8 bytes of the thread's text, without the NUL.
  static func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let text = pthread_getspecific(key) else {
      return body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    return body(UnsafeRawBufferPointer(start: text, count: strlen(text.assumingMemoryBound(to: CChar.self))))
  }
}
