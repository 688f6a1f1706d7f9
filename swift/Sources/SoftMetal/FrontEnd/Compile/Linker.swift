/// The linker of the system: `ld` on the search path. clang calls it too, but to compile and link it starts once more as a
/// process of its own, which takes a tenth of a second.
enum Linker {
  /// Of what the linker and clang both take.
  static func flags(_ options: ShaderCompiler.Options) -> [String] {
    // Code for a level is shipped, so it goes without symbols.
    ["-shared"] + (options.level == nil ? [] : ["-s"])
  }

  /// Makes a shared object of one that was compiled.
  ///
  /// - Returns: false where there is no linker, or it fails.
  static func link(
    _ compiled: String, to output: String, _ options: ShaderCompiler.Options, _ settings: CompilerSettings,
    _ work: WorkFolder
  ) -> Bool {
    guard let path = settings.program("ld") else { return false }
    let arguments = flags(options) + ["--hash-style=gnu", "--eh-frame-hdr", compiled, "-o", output]
    guard let outcome = ChildProcess.run(path, arguments, temporaryFolder: work.path) else { return false }
    return outcome.status ?? 0 == 0 && Files.identity(output) != nil
  }
}
