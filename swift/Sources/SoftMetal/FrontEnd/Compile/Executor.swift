import Glibc

/// How the kernels of a shader run that use lane functions or barriers.
enum Executor: Hashable, Sendable {
  /// One thread at a time, each a flow of control of its own: the reference. It has of `plugin`, where there is one, what
  /// mends LLVM's mistakes.
  case threads(why: String, plugin: String?)
  /// A SIMD group is one flow of control over vectors, made by the compiler pass in `plugin`.
  case vectors(plugin: String)
  /// An NVIDIA GPU. The object has PTX, and describes its kernels. The pass in `plugin`, where there is one, finds where
  /// all lanes of a SIMD group come together.
  case nvptx(plugin: String?)

  /// What is asked for.
  enum Choice: Hashable, Sendable {
    /// On the CPU as well as it can be.
    case usual
    /// On the CPU with every thread by itself, to compare with.
    case threads
    case nvptx

    /// Whether kernels are compiled ahead of time for it.
    var isPrecompiled: Bool {
      switch self {
      case .usual: !Executor.isThreadsAsked
      case .threads: false
      case .nvptx: !NvptxCode.alignsBarriers
      }
    }
  }

  static func chosen(_ choice: Choice, for clang: Clang) -> Executor {
    switch choice {
    case .usual: usual(for: clang)
    case .threads: .threads(why: "for comparison", plugin: plugin(for: clang))
    case .nvptx: .nvptx(plugin: plugin(for: clang))
    }
  }

  /// Vectors where the pass is at hand and SOFTMETAL_EXECUTOR is not `threads`.
  private static func usual(for clang: Clang) -> Executor {
    let plugin = plugin(for: clang)
    if isThreadsAsked { return .threads(why: "SOFTMETAL_EXECUTOR is threads", plugin: plugin) }
    guard let plugin else {
      let (version, tested) = (clang.version, Clang.testedVersion)
      let other = version == tested ? "" : "; this is clang \(version), and clang \(tested) is supported"
      return .threads(
        why: "\(pluginName(for: clang)), the compiler pass for vectors, is not beside the library\(other)",
        plugin: nil)
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
    case .threads(let why, _): why
    case .vectors, .nvptx: ""
    }
  }

  /// What clang is told.
  var flags: [String] {
    switch self {
    // Little is optimised in what others are compared with.
    case .threads(_, let plugin): ["-O1"] + (plugin.map { ["-fpass-plugin=\($0)"] } ?? [])
    // Only tables, and what sets constants.
    case .nvptx: ["-O1", "-DSM_DESCRIBE_ONLY"]
    // Where an array's life ends in one lane, others may still be in its scope.
    case .vectors(let plugin):
      ["-O3", "-DSM_EXECUTE_VECTORS", "-fpass-plugin=\(plugin)", "-Xclang", "-disable-lifetime-markers"]
        + Self.prefetching
    }
  }

  /// How far loops of independent threads ask ahead for memory, in operations: `apply_rope` in bf16 for 3 KiB.
  private static let prefetching = ["-prefetch-distance=2400", "-cache-line-size=64"].flatMap { ["-mllvm", $0] }

  var isGpu: Bool { if case .nvptx = self { true } else { false } }

  var plugin: String? {
    switch self {
    case .threads(_, let plugin): plugin
    case .vectors(let plugin): plugin
    case .nvptx(let plugin): plugin
    }
  }

  /// The state of what it consists of, for the cache's key.
  var identity: String {
    switch self {
    case .threads(let why, let plugin): "threads \(why) \(plugin.flatMap { Files.identity($0) } ?? "")"
    case .vectors(let plugin): "vectors \(Files.identity(plugin) ?? "")"
    case .nvptx(let plugin): "nvptx \(NvptxCode.identity) \(plugin.flatMap { Files.identity($0) } ?? "")"
    }
  }

  /// Whether a kernel that was to run as a loop has primitives of lanes left.
  static func lacksLanes(_ error: ShaderCompilerError) -> Bool { error.message.contains("undefined symbol 'sm_") }

  /// What to compile for where this one ended with `error`: one thread at a time where the pass declines a kernel, in its
  /// own words, and without the pass where the compiler fails or breaks with it, as one of another make may. Nil where
  /// nothing else is left.
  func next(after error: ShaderCompilerError) -> Executor? {
    guard let plugin else { return nil }
    if case .nvptx = self {
      let isOfPass = error.kind == .hostFailure || error.kind == .compilerCrash
      return isOfPass ? .nvptx(plugin: nil) : nil
    }
    // An error that has no place in the source is clang's own failure, so its words come before its kind.
    if let reason = Self.refusal(error) { return .threads(why: reason, plugin: plugin) }
    guard error.kind == .hostFailure || error.kind == .compilerCrash else { return nil }
    let isThreads = if case .threads = self { true } else { false }
    let reason = error.message.split(separator: "\n").joined(separator: " ")
    return .threads(why: isThreads ? whyThreads : reason, plugin: nil)
  }

  /// Why the pass declines a kernel, where an error of its compilation says so.
  private static func refusal(_ error: ShaderCompilerError) -> String? {
    let mark = "softmetal: "
    for line in error.message.split(separator: "\n") {
      guard let place = line.firstRange(of: mark + "kernel '") else { continue }
      return String(line[place.lowerBound...].dropFirst(mark.count))
    }
    return nil
  }
}
