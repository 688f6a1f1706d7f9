import Glibc

/// Which signals the threads made by this thread will take.
enum SignalMask {
  /// Runs `body` with the real-time signals unblocked. The threads that it
  /// makes take the signal that stops a kernel at its time limit, even when
  /// this thread takes none, as a thread of libdispatch does.
  static func withRealTimeSignalsUnblocked<Result>(_ body: () throws -> Result) rethrows -> Result {
    var signals = sigset_t()
    var previous = sigset_t()
    sigemptyset(&signals)
    for signal in __libc_current_sigrtmin()...__libc_current_sigrtmax() { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_UNBLOCK, &signals, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    return try body()
  }
}
