import Synchronization

/// Compiles MSL source into a shared object, by way of the cache.
enum ShaderCompiler {
  /// Settings that change the code made from a source.
  struct Options: Hashable, Sendable {
    /// Whether arithmetic may ignore NaN, infinities and the order of sums.
    var fastMath = false
    /// Whether little code is wanted, soon, rather than fast code.
    var isSmall = false
    /// Whether kernels are compiled for threadgroups that are rows of whole SIMD groups alone.
    var needsRowsOfSIMDGroups = false
    /// 310 for version 3.1 of the language.
    var languageVersion = 310
    /// The processors that the code is for; nil: this machine's.
    var level: ProcessorLevel?
  }

  /// Compiles `source`, or takes it from what was compiled ahead of time or from the cache.
  ///
  /// - Parameters:
  ///   - source: one MSL translation unit.
  ///   - label: the file name that diagnostics show.
  ///   - kernel: compile this kernel alone. Nil: the library, with all of them,
  ///     or only checked and without an object where they are compiled one by one.
  ///   - choice: what is to run it.
  ///   - settings: where the compiler and the cache are.
  /// - Throws: `ShaderCompilerError`.
  static func compile(
    source: String, label: String = "program_source", options: Options = Options(),
    kernel: String? = nil, for choice: Executor.Choice = .usual,
    settings: CompilerSettings = .environment, precompiled: PrecompiledShaders? = .installed
  ) throws -> CompiledShader {
    let text = Array(source.utf8)
    if let precompiled, options.level == nil, choice.isPrecompiled {
      let key = PrecompiledShaders.key(source: text, label: label, options: options, kernel: kernel)
      if let entry = precompiled.load(key: key, for: choice) {
        return CompiledShader(label: label, entry, wasCached: true)
      }
    }
    let clang = try Clang.find(settings)
    let job = Job(
      source: text, label: label, options: options, kernel: kernel, clang: clang,
      executor: Executor.chosen(choice, for: clang),
      cache: ShaderCache.open(settings),
      settings: settings)
    let sourceKey = job.sourceKey(kernel)
    if let entry = job.cache?.load(sourceKey: sourceKey) { return CompiledShader(label: label, entry, wasCached: true) }
    let work = try WorkFolder(cache: job.cache, settings)
    let program = try job.program(work)
    let lowered = program.lowered.shader(kernel: kernel, needingLanes: [])
    let key = job.key(of: lowered, program)
    // A second process waits here for the first, and finds its object.
    let lock = job.cache.flatMap { EntryLock($0.folder.lock(key)) }
    defer { lock?.release() }
    if let entry = job.cache?.load(key: key) {
      job.cache?.link(sourceKey: sourceKey, to: key)
      return CompiledShader(label: label, entry, wasCached: true)
    }
    let entry = try job.compile(program, lowered, work)
    job.cache?.store(entry.metadata, object: entry.object, key: key)
    job.cache?.link(sourceKey: sourceKey, to: key)
    return CompiledShader(label: label, entry, wasCached: false)
  }
}

/// One call of the compiler.
private struct Job {
  let source: [UInt8]
  let label: String
  let options: ShaderCompiler.Options
  let kernel: String?
  let clang: Clang
  let executor: Executor
  let cache: ShaderCache?
  let settings: CompilerSettings

  /// Identifies the source as the user gave it, for this build of the library.
  func sourceKey(_ kernel: String?) -> String {
    var hash = environmentHash
    hash.combine(HostIdentity.library)
    hash.combine(label)
    hash.combine(kernel ?? "")
    hash.combine(source)
    return hash.name
  }

  /// Identifies the object that lowered text compiles to.
  func key(of lowered: LoweredShader, _ program: Program) -> String {
    var hash = environmentHash
    hash.combine(lowered.text)
    for definition in lowered.definitions(executor) { hash.combine(definition) }
    hash.combine(program.warnings)
    hash.combine(isCheckOnly(lowered) ? "check" : "")
    return hash.name
  }

  private var environmentHash: Hash128 {
    var hash = HeaderFolder.hash
    hash.combine(clang.identity)
    hash.combine(HostIdentity.processor)
    hash.combine(executor.identity)
    for flag in CompilerFlags.code(options, clang, executor) { hash.combine(flag) }
    return hash
  }

  /// A library whose kernels are compiled one by one is only checked. For a GPU all are: its driver takes as long again
  /// for each kernel of a file.
  private func isCheckOnly(_ lowered: LoweredShader) -> Bool {
    kernel == nil && (lowered.compilesSeparately || executor.isGpu)
  }

  // MARK: Steps of a compilation

  /// A source after the preprocessor, and lowered.
  struct Program {
    let lowered: LoweredProgram
    /// What the preprocessor warned of.
    let warnings: String
  }

  /// The last programs: kernels that are compiled one by one share theirs.
  private static let programs = Mutex<[(key: String, program: Program)]>([])
  private static let programLimit = 4

  func program(_ work: WorkFolder) throws -> Program {
    let key = sourceKey(nil)
    if let known = Self.programs.withLock({ $0.first { $0.key == key }?.program }) { return known }
    let preprocessed = try preprocess(work)
    let lowered = try Lowering.program(
      preprocessed.text, origin: preprocessed.origin, languageVersion: options.languageVersion)
    let program = Program(lowered: lowered, warnings: preprocessed.warnings)
    Self.programs.withLock { programs in
      programs.removeAll { $0.key == key }
      programs.insert((key, program), at: 0)
      if programs.count > Self.programLimit { programs.removeLast() }
    }
    return program
  }

  /// The source without its macros and conditional lines.
  struct Preprocessed {
    let text: SourceText
    let origin: SourceOrigin
    var warnings = ""
  }

  func preprocess(_ work: WorkFolder) throws -> Preprocessed {
    let text = SourceText(source)
    let origin = SourceOrigin(label: label, source: text)
    if Preprocessing.isIdentity(text) { return Preprocessed(text: text, origin: origin) }
    // No source includes a file of this name.
    let input = work.path + "/text to preprocess"
    let output = work.path + "/source.ii"
    let overlay = work.path + "/overlay"
    let marker = Array("#line 1 \"\(origin.escapedLabel)\"\n".utf8)
    guard let stubs = HeaderFolder.stubs(in: work.headerParent), Files.write(marker + source, to: input),
      Files.write(FileOverlay.of(input: input, folder: stubs), to: overlay)
    else { throw cannotWrite(work) }
    let arguments = CompilerFlags.preprocess(input, to: output, stubs: stubs, overlay: overlay, options: options)
    let map = SourceMap(unchanged: text, origin: origin)
    let warnings = try run(arguments, output: output, map, headers: stubs, work)
    let folders = [work.path + "/", stubs + "/"]
    let result = SourceText(Preprocessing.withoutFolders(folders, in: Files.read(output) ?? []))
    return Preprocessed(text: result, origin: origin.preprocessed(into: result), warnings: warnings)
  }

  /// Compiles `lowered`, and again where kernels that were to run as loops turn out to need lanes: clang stops after
  /// some errors, so they may not all be known at once.
  func compile(_ program: Program, _ lowered: LoweredShader, _ work: WorkFolder) throws -> CacheEntry.Content {
    var lowered = lowered
    var needingLanes: Set<String> = []
    while true {
      do {
        var entry = try compileOrDecline(lowered, work)
        entry.metadata.log = program.warnings + entry.metadata.log
        return entry
      } catch let error as LanesNeeded {
        // A message of the source's own may look like the word and name any number.
        let known = error.numbers.filter { lowered.describedNames.indices.contains($0 - 1) }
        let names = known.map { lowered.describedNames[$0 - 1] }
        guard !needingLanes.isSuperset(of: names) else {
          throw ShaderCompilerError(
            kind: .hostFailure, message: "\(label): internal error: \(names) need lanes and have them")
        }
        needingLanes.formUnion(names)
        lowered = program.lowered.shader(kernel: kernel, needingLanes: needingLanes)
      }
    }
  }

  /// Compiles for the executor, or for the next where that fails.
  private func compileOrDecline(_ lowered: LoweredShader, _ work: WorkFolder) throws -> CacheEntry.Content {
    do {
      return try compile(lowered, executor, work, isCheckOnly: isCheckOnly(lowered))
    } catch let error as ShaderCompilerError {
      // Which of the loops it is does not show in an object that is not linked.
      if case .vectors = executor, Executor.lacksLanes(error), lowered.hasLoops {
        throw LanesNeeded(numbers: Set(1...lowered.describedNames.count))
      }
      guard let next = executor.next(after: error) else { throw error }
      // One kernel that the pass declines does not keep the others from vectors: each is compiled by itself.
      let isOfLibrary = kernel == nil && lowered.functionNames.count > 1 && next.plugin != nil
      return try compile(lowered, next, work, isCheckOnly: isCheckOnly(lowered) || isOfLibrary)
    }
  }

  private func compile(
    _ lowered: LoweredShader, _ executor: Executor, _ work: WorkFolder, isCheckOnly: Bool
  ) throws -> CacheEntry.Content {
    let input = work.path + "/lowered.cpp"
    let output = work.path + "/object.o"
    guard let headers = HeaderFolder.headers(in: work.headerParent), Files.write(lowered.text, to: input) else {
      throw cannotWrite(work)
    }
    let flags = CompilerFlags.code(options, clang, executor) + lowered.definitions(executor)
    let library =
      lowered.includesLibrary
      ? PrecompiledHeader.inclusion(flags: flags, headers: headers, clang: clang, work: work) : []
    let arguments =
      flags + ["-isystem", headers] + library + CompilerFlags.diagnostics
      + [input, "-o", output, isCheckOnly ? "-fsyntax-only" : "-c"]
    let ptx = executor.isGpu && !isCheckOnly ? try compileToPTX(lowered, input, headers: headers, work) : []
    let log = try run(arguments + ptx, output: isCheckOnly ? nil : output, lowered.sourceMap, headers: headers, work)
    let object = isCheckOnly ? [] : try link(output, lowered.sourceMap, headers: headers, work)
    try UndefinedSymbols.check(object, label: label)
    let metadata = CacheEntry.Metadata(functionNames: lowered.functionNames, whyThreads: executor.whyThreads, log: log)
    return (metadata, object)
  }

  /// Makes the shared object of what clang has compiled.
  private func link(_ compiled: String, _ map: SourceMap, headers: String, _ work: WorkFolder) throws -> [UInt8] {
    let output = work.path + "/object.so"
    if !Linker.link(compiled, to: output, options, settings, work) {
      // With what clang knows of the machine, and in its words.
      _ = try run(
        Linker.flags(options) + ["-nostdlib", compiled, "-o", output], output: output, map, headers: headers, work)
    }
    guard let object = Files.read(output), !object.isEmpty else { throw cannotWrite(work) }
    return object
  }

  /// Makes code for a GPU; returns what has clang put it into the object.
  private func compileToPTX(
    _ lowered: LoweredShader, _ input: String, headers: String, _ work: WorkFolder
  ) throws -> [String] {
    let (raw, placed, code) = (work.path + "/raw.ll", work.path + "/placed.ll", work.path + "/code.ptx")
    let plugin = executor.plugin
    let flags =
      NvptxCode.flags(options) + lowered.definitions(executor) + (plugin == nil ? [] : ["-DSM_LANES_PASS"])
    let library =
      lowered.includesLibrary
      ? PrecompiledHeader.inclusion(flags: flags, headers: headers, clang: clang, work: work) : []
    let arguments = flags + ["-isystem", headers] + library + CompilerFlags.diagnostics + NvptxCode.rawOutput
    _ = try run(arguments + [input, "-o", raw], output: raw, lowered.sourceMap, headers: headers, work)
    guard let text = Files.read(raw), Files.write(NvptxCode.placed(text), to: placed) else { throw cannotWrite(work) }
    let generation =
      NvptxCode.generationFlags + CompilerFlags.diagnostics + (plugin.map { ["-fpass-plugin=\($0)"] } ?? [])
    do {
      _ = try run(generation + [placed, "-o", code], output: code, lowered.sourceMap, headers: headers, work)
    } catch let error as ShaderCompilerError where error.message.contains(ClangLog.recursion) {
      // LLVM's code has no places of the source; clang says the same of them when it compiles for the CPU.
      _ = try compile(lowered, .threads(why: "", plugin: plugin), work, isCheckOnly: false)
      throw error
    }
    guard let ptx = Files.read(code) else { throw cannotWrite(work) }
    try NvptxCode.check(ptx, label: label)
    return ["-DSM_PTX=\"\(code)\""]
  }

  /// Runs clang; returns its warnings.
  private func run(
    _ arguments: [String], output: String?, _ map: SourceMap, headers: String, _ work: WorkFolder
  ) throws -> String {
    guard let outcome = ChildProcess.run(clang.path, arguments, temporaryFolder: work.path) else {
      throw ShaderCompilerError(kind: .hostFailure, message: "cannot start \(clang.path): \(Files.lastError)")
    }
    if let crash = CompilerCrash(outcome, clang: clang) { throw crash.error(map, label: label, kernel: kernel) }
    if let error = LanesNeeded(log: outcome.output) { throw error }
    let log = ClangLog.translate(outcome.output, map, headerFolder: headers)
    if log.errors > 0 { throw ShaderCompilerError(kind: .compileFailure, message: log.text) }
    // Without a status the output tells whether clang succeeded.
    let hasOutput = output.map { Files.identity($0) != nil } ?? true
    guard outcome.status == 0 || (outcome.status == nil && hasOutput) else {
      throw ShaderCompilerError(
        kind: .hostFailure, message: "\(clang.path) failed with status \(outcome.status ?? -1):\n\(log.text)")
    }
    return log.text
  }

  private func cannotWrite(_ work: WorkFolder) -> ShaderCompilerError {
    ShaderCompilerError(
      kind: .hostFailure, message: "cannot write the files of a compilation in \(work.path): \(Files.lastError)")
  }
}
