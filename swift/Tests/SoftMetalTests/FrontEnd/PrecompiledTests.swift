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
        var precompiler = try Precompiler(level, in: kernels)
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
        precompiled: PrecompiledShaders(in: kernels, processorLevel: level))
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
      let defines = [ShaderCompiler.Options.Define(name: "N", value: "1")]
      #expect(isMissing { try compile(smallSource(1), level: 3, options: .init(fastMath: true, defines: defines)) })
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

    /// The features by their names in Linux's list.
    @Test func theLevelIsWhatTheSystemSaysOfTheProcessor() throws {
      let text = try String(decoding: #require(Files.read("/proc/cpuinfo")), as: UTF8.self)
      let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("flags") })
      let flags = Set(line.split(separator: " "))
      let levels: [[Substring]] = [
        [],
        ["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"],
        ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"],
        ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
      ]
      let level = levels.prefix { flags.isSuperset(of: $0) }.count
      #expect(sm_x86_64_level() == level)
    }
  }
#endif
