import Glibc

/// A lock with a condition to wait for.
final class Monitor: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init() {
    mutex.initialize(to: pthread_mutex_t())
    condition.initialize(to: pthread_cond_t())
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Sleeps until `isReady` holds, which is asked for with the lock held;
  /// gives back what `body` makes of it under the same lock.
  func wait<Result>(until isReady: () -> Bool, then body: () -> Result) -> Result {
    withLock {
      while !isReady() { pthread_cond_wait(condition, mutex) }
      return body()
    }
  }

  /// Wakes all who wait, after a change made by `body` under the lock.
  func notify(after body: () -> Void) {
    withLock(body)
    pthread_cond_broadcast(condition)
  }
}
