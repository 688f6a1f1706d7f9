import Glibc

/// What a cached object depends on besides its source: this processor and this
/// build of the library.
enum HostIdentity {
  /// The kind of processor, which `-march=native` compiles for.
  static let processor: String = {
    // The first processor's part is enough, and cheaper than the whole file.
    let descriptor = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "unknown" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 8192)
    let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    let text = String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    let keys = ["vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features"]
    var seen: Set<Substring> = []
    var result = ""
    for line in text.split(separator: "\n") {
      let name = line.prefix { $0 != "\t" && $0 != ":" }
      if keys.contains(where: { name == $0 }), seen.insert(name).inserted { result += line + "\n" }
    }
    return result
  }()

  /// The file that holds this code: another build may lower otherwise.
  static let library: String =
    libraryPath.flatMap { Files.identity($0) } ?? Files.identity("/proc/self/exe") ?? "unknown"

  /// The path of that file; nil where it cannot be told.
  static let libraryPath: String? = {
    // Swift does not import dladdr. It fills in: file name, base, symbol name, symbol.
    typealias Find = @convention(c) (UnsafeRawPointer, UnsafeMutablePointer<UnsafePointer<CChar>?>) -> Int32
    guard let symbol = dlsym(nil, "dladdr") else { return nil }
    var info = [UnsafePointer<CChar>?](repeating: nil, count: 4)
    guard unsafeBitCast(symbol, to: Find.self)(#dsohandle, &info) != 0 else { return nil }
    // Of a program that the shell found there is no more than its name.
    return info[0].map { String(cString: $0) }.flatMap { $0.contains("/") ? $0 : program }
  }()

  /// The path of the program that runs.
  private static var program: String? {
    guard let path = realpath("/proc/self/exe", nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }
}
