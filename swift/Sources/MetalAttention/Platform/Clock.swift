#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The clock in which Metal tells when the device began and ended, for the host.
enum Clock {
  /// Seconds.
  static var now: Double {
    var time = timespec()
    #if canImport(Darwin)
      clock_gettime(CLOCK_UPTIME_RAW, &time)
    #else
      clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }
}
