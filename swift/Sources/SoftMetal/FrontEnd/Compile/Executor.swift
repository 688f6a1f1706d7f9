import Glibc

/// How the kernels of a shader run that use lane functions or barriers.
enum Executor: Hashable, Sendable {
  /// Every thread is a fibre.
  case fibres
  /// A SIMD group is one flow of control over vectors, made by the compiler pass in `plugin`.
  case vectors(plugin: String)

  /// Vectors where the pass is at hand and SOFTMETAL_EXECUTOR is not `fibres`. The pass's primitives are declared in
  /// C++ alone: as C++ for OpenCL kernels run as fibres.
  static func chosen(for clang: Clang, _ dialect: Dialect) -> Executor {
    guard !isFibresAsked, dialect == .cxx, let plugin = plugin(for: clang) else { return .fibres }
    return .vectors(plugin: plugin)
  }

  static var isFibresAsked: Bool { Files.environment("SOFTMETAL_EXECUTOR") == "fibres" }

  /// The pass that was built for this clang: SOFTMETAL_LANES, or beside the library.
  static func plugin(for clang: Clang) -> String? {
    if let path = Files.environment("SOFTMETAL_LANES") { return path }
    guard let library = HostIdentity.libraryPath, let slash = library.lastIndex(of: "/") else { return nil }
    let folder = library[..<slash], name = "softmetal-lanes-\(clang.version).so"
    return ["\(folder)/\(name)", "\(folder)/../lib/\(name)"].first { access($0, R_OK) == 0 }
  }

  /// What clang is told.
  var flags: [String] {
    switch self {
    case .fibres:
      [
        // Lanes write into the matrix lane's frame before it gets there: no variable may share another's place.
        "-Xclang", "-disable-lifetime-markers", "-mllvm", "-no-stack-coloring",
        // Loops of matrix operations are empty for all lanes but one: worth a copy of the loop.
        "-mllvm", "-unswitch-threshold=2000",
      ]
    case .vectors(let plugin):
      ["-DSM_EXECUTE_VECTORS", "-fpass-plugin=\(plugin)", "-Xclang", "-disable-lifetime-markers"]
    }
  }

  /// The state of what it consists of, for the cache's key.
  var identity: String {
    switch self {
    case .fibres: "fibres"
    case .vectors(let plugin): "vectors \(Files.identity(plugin) ?? "")"
    }
  }

  /// Whether a message says that a kernel is left to fibres: the pass's own, or that primitives are left in a kernel
  /// that was to run as a loop.
  static func isRefusal(_ message: String) -> Bool {
    message.contains("softmetal: kernel '") || message.contains("undefined symbol 'sm_")
  }
}
