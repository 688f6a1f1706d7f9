/// The command line of clang.
enum CompilerFlags {
  /// What the language predefines.
  static func defines(_ options: ShaderCompiler.Options) -> [String] {
    [
      "-D__METAL_VERSION__=\(options.languageVersion)", "-D__METAL__=1", "-D__METAL_MACOS__=1",
      "-D__METAL_PRECISE_MATH__=0", "-D__METAL_FAST_MATH__=1", "-D__METAL_MAYBE_FAST_MATH__=0",
    ] + (options.languageVersion >= 310 ? ["-D__HAVE_BFLOAT__=1"] : [])
  }

  static let diagnostics = [
    "-fno-color-diagnostics", "-fno-caret-diagnostics", "-fno-diagnostics-show-note-include-stack",
    "-ferror-limit=50", "-fno-elide-type", "-fno-crash-diagnostics",
  ]

  /// Expands the user's macros, with stubs for the headers of the language.
  static func preprocess(
    _ input: String, to output: String, stubs: String, overlay: String, options: ShaderCompiler.Options
  ) -> [String] {
    ["-x", "c++", "-std=c++17", "-E", "-nostdinc", "-Wno-unknown-pragmas", "-I", stubs, "-ivfsoverlay", overlay]
      + defines(options) + (options.fastMath ? ["-D__FAST_MATH__=1"] : []) + diagnostics + [
        input, "-o", output,
      ]
  }

  /// The flags that decide on the code, and so are part of the cache's key.
  static func code(_ options: ShaderCompiler.Options, _ clang: Clang, _ executor: Executor)
    -> [String]
  {
    var flags = language
    flags += [
      "-fno-convergent-functions", "-fPIC", "-fno-exceptions", "-fno-rtti",
      "-fno-math-errno", "-fno-stack-protector", "-fomit-frame-pointer", "-fvisibility=hidden",
      "-fno-threadsafe-statics", "-nostdlibinc", "-Xclang", "-ffloat16-excess-precision=none",
      // A frame larger than a stack's guard page would reach over it into the stack of another thread.
      "-fstack-clash-protection",
      // Where LLVM 19 first computes something without the frame, the loop that touches the pages of a large one
      // overwrites a register that it needs.
      "-mllvm", "-enable-shrink-wrap=false",
      // Else clang stores vectors of three with a fourth component that makes undefined whatever is read with it.
      "-Xclang", "-fpreserve-vec3-type",
      // GPUs read and write a float4 that lies where a float may, and published kernels rely on it.
      "-fmax-type-align=8",
    ]
    // The last of several levels counts.
    flags += executor.flags + (options.isSmall ? soon : []) + warnings
    flags += processor(options.level)
    return flags + arithmetic(options) + simdgroups(options) + defines(options)
  }

  /// Of what the headers know SIMD groups to be.
  static func simdgroups(_ options: ShaderCompiler.Options) -> [String] {
    options.needsRowsOfSIMDGroups ? ["-DSM_ROWS_OF_SIMDGROUPS"] : []
  }

  static let language = [
    "-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-fdeclspec", "-cl-fp32-correctly-rounded-divide-sqrt",
  ]

  /// Slower code in half the time, for kernels that run a few times: LLVM's scheduler and its usual register allocator
  /// take a third of what follows the pass.
  private static let soon = ["-O1", "-mllvm", "-enable-misched=false", "-mllvm", "-regalloc=basic"]

  static let warnings = [
    "-Wno-unknown-attributes", "-Wno-ignored-attributes", "-Wno-unknown-pragmas", "-Wno-pass-failed", "-Werror=vla",
    "-Wno-unused-function", "-Wno-pragma-once-outside-header", "-Wno-defaulted-function-deleted",
    "-Wno-duplicate-decl-specifier", "-Wno-unused-command-line-argument",
    // Metal's language is C++14.
    "-Wno-increment-bool", "-Werror=ctad-maybe-unsupported",
  ]

  static func arithmetic(_ options: ShaderCompiler.Options) -> [String] {
    options.fastMath ? ["-ffast-math"] : ["-ffp-contract=off"]
  }

  private static func processor(_ level: ProcessorLevel?) -> [String] {
    #if arch(x86_64)
      // Without it clang 19 moves numbers to registers of masks, and loses the zeros above a byte that it takes of them.
      let sound = ["-mllvm", "-disable-x86-domain-reassignment"]
      let common = ["-mno-red-zone", "-mprefer-vector-width=512"] + sound
      if let level { return common + ["-march=\(level.rawValue)"] }
      // The processor's own conversion to bfloat makes subnormals zero. Of its own arithmetic of halves clang 19 turns
      // comparisons with memory round, and older ones crash. AVX10.1 contains both.
      return common + ["-march=native", "-mno-avx512bf16", "-mno-avx512fp16", "-mno-avx10.1"]
    #else
      return ["-mcpu=native"]
    #endif
  }
}
