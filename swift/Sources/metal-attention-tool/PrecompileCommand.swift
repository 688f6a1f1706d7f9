import ArgumentParser

#if canImport(SoftMetal)
  import FoundationEssentials
  import Glibc
  import MetalAttention
  import SoftMetal
  import Synchronization

  /// Compiles the built-in kernels for the folder that travels with the library.
  struct PrecompileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "precompile",
      abstract: "Compile the built-in kernels ahead of time.",
      discussion: """
        Writes one file a kernel into OUTPUT/LEVEL. In an archive named kernels.tar beside the library file, with \
        names from LEVEL on, these are used in place of clang, by the highest level that the processor has. What the \
        shader cache holds is not compiled again. The level nvptx is NVIDIA GPUs.

        EXAMPLE: metal-attention-tool precompile --output kernels --level x86-64-v3 --level x86-64-v4
        tar -cf lib/kernels.tar --format=ustar -C kernels x86-64-v3 x86-64-v4
        """)

    @Option(help: "A folder, which is made where it is missing.")
    var output: String

    @Option(
      name: .customLong("level"), parsing: .singleValue,
      help: "A level of the x86-64 psABI, or nvptx; may be repeated. All of them unless given.")
    var levels: [PrecompileTarget] = []

    @Option(
      help: """
        Of a source's kernels, for processors' levels that this one does not choose: the first, and every so many from \
        there. All of them unless given.
        """)
    var sample = 1

    @Option(help: "How many compilers may run at once.")
    var jobs = 2

    func validate() throws {
      guard sample > 0 else { throw ValidationError("--sample is \(sample); at least 1 is needed.") }
      guard jobs > 0 else { throw ValidationError("--jobs is \(jobs); at least one is needed.") }
    }

    func run() throws {
      // Progress is seen as it is made, in a file too.
      setvbuf(stdout, nil, _IOLBF, 0)
      let levels = levels.isEmpty ? PrecompileTarget.all : levels
      if !FileManager.default.fileExists(atPath: output) {
        try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
        print("the folder \(output) is made")
      }
      let precompilers = try levels.map { try Precompiler($0, in: output) }
      let libraries = precompilers.flatMap { precompiler in
        BuiltInSources.compilations.map { (precompiler: precompiler, compilation: $0) }
      }
      let kernels = Mutex<[(precompiler: Precompiler, unit: Precompiler.Unit)]>([])
      try Concurrently.run(libraries, jobs: jobs) { precompiler, compilation in
        let units = try precompiler.compileLibrary(compilation.source, options: compilation.options)
        let stride = precompiler.isForOtherProcessors ? sample : 1
        let chosen = units.enumerated().filter { $0.offset.isMultiple(of: stride) }
        kernels.withLock { $0 += chosen.map { (precompiler, $0.element) } }
      }
      try Concurrently.run(kernels.withLock { $0 }, jobs: jobs) { precompiler, unit in
        try precompiler.compile(unit)
      }
    }
  }

  extension PrecompileTarget: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }

    public static var allValueStrings: [String] { all.map(\.folder) }
  }

  /// The commands that only the software device has.
  let softwareDeviceCommands: [any ParsableCommand.Type] = [PrecompileCommand.self, PtxCommand.self]
#else
  let softwareDeviceCommands: [any ParsableCommand.Type] = []
#endif
