#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What was printed did not come out, as on a full disk.
struct OutputError: Error, CustomStringConvertible {
  let description = "cannot write to standard output: \(String(cString: strerror(errno)))"

  /// Throws where some of what was printed is lost.
  static func check() throws {
    if fflush(stdout) != 0 || ferror(stdout) != 0 { throw OutputError() }
  }
}
