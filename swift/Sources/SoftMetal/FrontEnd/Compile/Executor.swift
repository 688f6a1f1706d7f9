import Glibc

/// How the kernels of a shader run that use lane functions or barriers.
enum Executor: Hashable, Sendable {
  /// One thread at a time, each a flow of control of its own: the reference.
  case threads(why: String)
  /// A SIMD group is one flow of control over vectors, made by the compiler pass in `plugin`.
  case vectors(plugin: String)

  /// Vectors where the pass is at hand and SOFTMETAL_EXECUTOR is not `threads`.
  static func chosen(for clang: Clang) -> Executor {
    if isThreadsAsked { return .threads(why: "SOFTMETAL_EXECUTOR is threads") }
    guard let plugin = plugin(for: clang) else {
      let (version, tested) = (clang.version, Clang.testedVersion)
      let other = version == tested ? "" : "; this is clang \(version), and clang \(tested) is supported"
      return .threads(
        why: "\(pluginName(for: clang)), the compiler pass for vectors, is not beside the library\(other)")
    }
    return .vectors(plugin: plugin)
  }

  static var isThreadsAsked: Bool { Files.environment("SOFTMETAL_EXECUTOR") == "threads" }

  /// The pass that was built for this clang: SOFTMETAL_LANES, or beside the library.
  static func plugin(for clang: Clang) -> String? {
    if let path = Files.environment("SOFTMETAL_LANES") { return path }
    guard let library = HostIdentity.libraryPath, let slash = library.lastIndex(of: "/") else { return nil }
    let folder = library[..<slash], name = pluginName(for: clang)
    return ["\(folder)/\(name)", "\(folder)/../lib/\(name)"].first { access($0, R_OK) == 0 }
  }

  private static func pluginName(for clang: Clang) -> String { "softmetal-lanes-\(clang.version).so" }

  /// As in `CacheEntry.Metadata`.
  var whyThreads: String {
    switch self {
    case .threads(let why): why
    case .vectors: ""
    }
  }

  /// What clang is told.
  var flags: [String] {
    switch self {
    // Little is optimised in what others are compared with.
    case .threads: ["-O1"]
    case .vectors(let plugin):
      ["-O3", "-DSM_EXECUTE_VECTORS", "-fpass-plugin=\(plugin)", "-Xclang", "-disable-lifetime-markers"]
    }
  }

  /// The state of what it consists of, for the cache's key.
  var identity: String {
    switch self {
    case .threads(let why): "threads \(why)"
    case .vectors(let plugin): "vectors \(Files.identity(plugin) ?? "")"
    }
  }

  /// Whether a kernel that was to run as a loop has primitives of lanes left.
  static func lacksLanes(_ error: ShaderCompilerError) -> Bool { error.message.contains("undefined symbol 'sm_") }

  /// Why the pass declines a kernel, where an error of its compilation says so: the pass's own words, or a compiler that
  /// fails with the pass, as one of another make may.
  static func refusal(_ error: ShaderCompilerError) -> String? {
    let mark = "softmetal: "
    for line in error.message.split(separator: "\n") {
      guard let place = line.firstRange(of: mark + "kernel '") else { continue }
      return String(line[place.lowerBound...].dropFirst(mark.count))
    }
    guard error.kind == .hostFailure else { return nil }
    return String(error.message.split(separator: "\n").joined(separator: " "))
  }
}
