import CSoftMetal
import Glibc
import Testing

@testable import SoftMetal

#if arch(x86_64)
  @Suite struct PrecompiledTests {
    let folder: ShaderFolder
    let kernels: String
    let options = MTLCompileOptions()

    init() throws {
      folder = try ShaderFolder()
      kernels = folder.path + "/kernels"
      mkdir(kernels, 0o700)
    }

    func precompile(_ levels: [ProcessorLevel]) throws {
      for level in levels {
        var precompiler = try Precompiler(.processor(level), in: kernels)
        precompiler.settings = folder.settings
        let separate = try precompiler.compileLibrary(smallSource(1), options: options)
        #expect(separate.isEmpty)
      }
    }

    /// Compiles as a machine of this level does that has neither clang nor a cache.
    func compile(
      _ source: String, level: Int32, options: ShaderCompiler.Options = .init(fastMath: true)
    ) throws -> CompiledShader {
      var settings = folder.settings
      settings.clang = folder.path + "/no-clang"
      settings.cachePath = "/dev/null/cache"
      return try ShaderCompiler.compile(
        source: source, options: options, settings: settings,
        precompiled: PrecompiledShaders(archive(), processorLevel: level))
    }

    /// What was compiled so far, as the packages have it.
    func archive() -> TarArchive {
      var bytes: [UInt8] = []
      for level in Files.names(in: kernels) {
        for name in Files.names(in: kernels + "/" + level) {
          bytes += tarFile("\(level)/\(name)", Files.read("\(kernels)/\(level)/\(name)") ?? [])
        }
      }
      return lasting(bytes)
    }

    /// An archive is in memory that stays.
    func lasting(_ bytes: [UInt8]) -> TarArchive {
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
      memory.copyBytes(from: bytes)
      return TarArchive(UnsafeRawBufferPointer(memory))
    }

    /// A header and the blocks of one file.
    func tarFile(_ name: String, _ contents: [UInt8]) -> [UInt8] {
      var block = [UInt8](repeating: 0, count: 512)
      let size = String(contents.count, radix: 8)
      for (offset, text) in [(0, name), (124, size), (156, "0"), (257, "ustar")] {
        block.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8)
      }
      let padding = [UInt8](repeating: 0, count: (512 - contents.count % 512) % 512)
      return block + contents + padding
    }

    @Test func anArchiveThatIsCutHasTheFilesBeforeTheCut() {
      let whole = tarFile("one", [1, 2, 3]) + tarFile("two", [UInt8](repeating: 7, count: 512)) + [0, 0]
      #expect(lasting(whole)["one"] == [1, 2, 3])
      #expect(lasting(whole)["two"]?.count == 512)
      #expect(lasting(whole)["three"] == nil)
      let cut = lasting(Array(whole.prefix(512 * 3 + 511)))
      #expect(cut["one"] == [1, 2, 3] && cut["two"] == nil)
      var broken = whole
      broken[124] = UInt8(ascii: "-")
      #expect(lasting(broken).names.isEmpty)
      #expect(lasting([]).names.isEmpty && lasting([UInt8](repeating: 0xFF, count: 2000)).names.isEmpty)
      #expect(TarArchive(path: kernels + "/none.tar") == nil)
    }

    func isMissing(_ body: () throws -> CompiledShader) -> Bool {
      compilerError { try body() }?.kind == .noCompiler
    }

    @Test func needNoCompiler() throws {
      try precompile([.v3])
      let shader = try compile(smallSource(1), level: 3)
      #expect(shader.functionNames == ["fill"])
      #expect(try LoadedShader(shader, constants: [:]).kernel(named: "fill") != nil)
    }

    @Test func theHighestLevelOfTheProcessorServes() throws {
      try precompile([.v3])
      let lower = try compile(smallSource(1), level: 4).object
      try precompile([.v4])
      #expect(try compile(smallSource(1), level: 3).object == lower)
      #expect(try compile(smallSource(1), level: 4).object != lower)
      #expect(isMissing { try compile(smallSource(1), level: 2) })
    }

    @Test func anythingElseIsCompiled() throws {
      try precompile([.v3])
      #expect(isMissing { try compile(smallSource(2), level: 3) })
      #expect(isMissing { try compile(smallSource(1), level: 3, options: .init(fastMath: false)) })
    }

    @Test func aDamagedEntryCountsAsNone() throws {
      try precompile([.v3])
      let level = kernels + "/x86-64-v3"
      let entry = try level + "/" + #require(Files.names(in: level).first)
      var bytes = try #require(Files.read(entry))
      bytes[bytes.count / 2] ^= 1
      #expect(Files.write(bytes, to: entry))
      #expect(isMissing { try compile(smallSource(1), level: 3) })
    }

    /// The loader asks the processor too, for folders of libraries that are made for a level. Linux's list of flags will
    /// not do: it can lack one that the processor has.
    @Test func theLevelIsWhatTheLoaderFinds() throws {
      let outcome = try #require(ChildProcess.run("/lib64/ld-linux-x86-64.so.2", ["--help"]))
      let level = (2...4).prefix { outcome.output.contains("x86-64-v\($0) (supported") }.last ?? 1
      #expect(sm_x86_64_level() == level)
    }
  }
#endif
