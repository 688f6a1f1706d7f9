import CSoftMetal
import Synchronization

/// Shaders that were compiled before the library was shipped, in a tar archive:
///
///     LEVEL/KEY    in the format of `CacheEntry`
///     nvptx/KEY    likewise, for an NVIDIA GPU
///
/// The key has neither compiler nor processor in it, so no clang is needed to
/// find an entry. It has no lowered text either: what a source is lowered to is
/// settled by the library, and archive and library are made together.
package struct PrecompiledShaders: Sendable {
  private let archive: TarArchive
  /// Nil where there are none for the processor.
  private let level: ProcessorLevel?

  /// Those for the highest level that a processor of level `number` has, and for GPUs; nil where there is neither.
  init?(_ archive: TarArchive, processorLevel number: Int32 = sm_x86_64_level()) {
    let level = ProcessorLevel.upTo(number)
      .first { level in archive.names.contains { $0.hasPrefix(level.rawValue + "/") } }
    guard level != nil || archive.names.contains(where: { $0.hasPrefix(Self.gpuFolder + "/") }) else { return nil }
    self.archive = archive
    self.level = level
  }

  static let gpuFolder = "nvptx"

  /// Given by the program, in place of those beside the library.
  private static let provided = Mutex<PrecompiledShaders?>(nil)

  /// Those in the archive beside the library.
  private static let shipped: PrecompiledShaders? = HostIdentity.libraryPath
    .flatMap { path in path.lastIndex(of: "/").map { path[..<$0] } }
    .flatMap { TarArchive(path: $0 + "/kernels.tar") }
    .flatMap { PrecompiledShaders($0) }

  /// Those in use.
  static var installed: PrecompiledShaders? { provided.withLock { $0 } ?? shipped }

  /// Takes the archive that a program carries. False where it has no files.
  package static func provide(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let archive = TarArchive(bytes)
    guard !archive.names.isEmpty else { return false }
    // An archive without this processor's level leaves the compiler to serve.
    provided.withLock { $0 = PrecompiledShaders(archive) }
    return true
  }

  /// A damaged entry counts as none.
  func load(key: String, for choice: Executor.Choice = .usual) -> CacheEntry.Content? {
    guard let folder = choice == .nvptx ? Self.gpuFolder : level?.rawValue else { return nil }
    return archive["\(folder)/\(key)"].flatMap { CacheEntry.decode($0) }
  }

  /// Identifies what a source is compiled to for some processor.
  static func key(source: [UInt8], label: String, options: ShaderCompiler.Options, kernel: String?) -> String {
    var hash = HeaderFolder.hash
    hash.combine(label)
    hash.combine(kernel ?? "")
    hash.combine(options.fastMath ? 1 : 0)
    hash.combine(options.isSmall ? 1 : 0)
    hash.combine(options.needsRowsOfSIMDGroups ? 1 : 0)
    hash.combine(UInt64(options.languageVersion))
    hash.combine(source)
    return hash.name
  }
}
