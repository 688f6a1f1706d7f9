import CSoftMetal
import Glibc

/// The machine that the software device runs on.
enum Processor {
  /// The model's name as the kernel tells it, else the instruction set's.
  static let name = modelName() ?? machineName()

  static let pageSize = sysconf(Int32(_SC_PAGESIZE))

  /// Bytes.
  static let physicalMemory = sysconf(Int32(_SC_PHYS_PAGES)) * pageSize

  /// Processors that the process may keep busy: those of its affinity mask, and no more than its share of time.
  static var usableCount: Int {
    let allowed = max(1, Int(sm_processor_count()))
    return ProcessorQuota().processors.map { min($0, allowed) } ?? allowed
  }

  /// The clock of command buffers, in seconds.
  static var time: Double {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) * 1e-9
  }

  private static func modelName() -> String? {
    guard let file = fopen("/proc/cpuinfo", "r") else { return nil }
    defer { fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    while getline(&line, &capacity, file) >= 0, let line {
      let parts = String(cString: line).split(separator: ":", maxSplits: 1)
      guard parts.count == 2, parts[0].hasPrefix("model name") else { continue }
      return parts[1].split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
    return nil
  }

  private static func machineName() -> String {
    var names = utsname()
    guard uname(&names) == 0 else { return "CPU" }
    return withUnsafeBytes(of: &names.machine) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}
