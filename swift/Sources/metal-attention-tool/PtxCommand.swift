import ArgumentParser

#if canImport(SoftMetal)
  import FoundationEssentials
  import Glibc
  import MetalAttention
  import SoftMetal
  import Synchronization

  /// Writes the built-in kernels as an NVIDIA GPU's driver takes them.
  struct PtxCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "ptx",
      abstract: "Compile the built-in kernels to PTX, for NVIDIA GPUs.",
      discussion: """
        Writes OUTPUT/KERNEL.ptx for every kernel, or for those named. No GPU and no toolkit is needed; ptxas, where \
        there is one, says what a GPU makes of a file.

        EXAMPLE: metal-attention-tool ptx --output ptx kv_cache_copy_f32
        ptxas -arch=sm_90 -v ptx/kv_cache_copy_f32.ptx -o /dev/null
        """)

    @Argument(help: "Names of kernels; all of them unless given.")
    var kernels: [String] = []

    @Option(help: "A folder, which is made where it is missing.")
    var output: String

    @Option(help: "How many compilers may run at once.")
    var jobs = 2

    func validate() throws {
      guard jobs > 0 else { throw ValidationError("--jobs is \(jobs); at least one is needed.") }
    }

    func run() throws {
      setvbuf(stdout, nil, _IOLBF, 0)
      let known = try OpenDevice().kernelNames()
      if let unknown = kernels.first(where: { !known.contains($0) }) {
        throw ValidationError("There is no built-in kernel '\(unknown)'; the command 'kernels' lists them.")
      }
      try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
      let wanted = Set(kernels)
      let found = Mutex<[GpuCode.Unit]>([])
      try Concurrently.run(BuiltInSources.compilations, jobs: jobs) { compilation in
        let units = try GpuCode.units(of: compilation.source, options: compilation.options)
        found.withLock { $0 += units.filter { wanted.isEmpty || wanted.contains($0.kernel) } }
      }
      let units = found.withLock { $0 }
      try Concurrently.run(units, jobs: jobs) { unit in
        let path = "\(output)/\(unit.kernel).ptx"
        try unit.compile().write(toFile: path, atomically: true, encoding: .utf8)
      }
      print("\(units.count) kernels in \(output)")
    }
  }
#endif
