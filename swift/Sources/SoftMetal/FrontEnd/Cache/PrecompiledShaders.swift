import CSoftMetal
import Glibc

/// Shaders that were compiled before the library was shipped, in folders beside
/// it that are only read:
///
///     kernels/LEVEL/KEY    in the format of `CacheEntry`
///
/// The key has neither compiler nor processor in it, so no clang is needed to
/// find an entry. It has no lowered text either: what a source is lowered to is
/// settled by the library, and folder and library are made together.
struct PrecompiledShaders: Sendable {
  private let folder: String

  /// The folder of `parent` for the highest level that a processor of level `number` has; nil without one.
  init?(in parent: String, processorLevel number: Int32 = sm_x86_64_level()) {
    let usable = ProcessorLevel.allCases.reversed().filter { $0.number <= number }
    let folders = usable.map { Self.folder(of: $0, in: parent) }
    guard let folder = folders.first(where: { access($0, R_OK | X_OK) == 0 }) else { return nil }
    self.folder = folder
  }

  /// Those that came with this library.
  static let installed: PrecompiledShaders? = HostIdentity.libraryPath
    .flatMap { path in path.lastIndex(of: "/").map { path[..<$0] } }
    .flatMap { PrecompiledShaders(in: $0 + "/kernels") }

  static func folder(of level: ProcessorLevel, in parent: String) -> String {
    parent + "/" + level.rawValue
  }

  /// A damaged entry counts as none.
  func load(key: String) -> CacheEntry.Content? {
    Files.read(folder + "/" + key).flatMap { CacheEntry.decode($0) }
  }

  /// Identifies what a source is compiled to for some processor.
  static func key(source: [UInt8], label: String, options: ShaderCompiler.Options, kernel: String?) -> String {
    var hash = HeaderFolder.hash
    hash.combine(label)
    hash.combine(kernel ?? "")
    hash.combine(options.fastMath ? 1 : 0)
    for define in options.defines {
      hash.combine(define.name)
      hash.combine(define.value)
    }
    hash.combine(source)
    return hash.name
  }
}
