import CMetalAttention

/// How a source is compiled.
struct SourceOptions {
  /// In the order given.
  private(set) var macros: [(name: String, value: String)] = []
  /// Masks rely on infinities, so the compiler must not assume them away unless it is asked to.
  private(set) var mathMode = MathMode.safe
  private(set) var optimizationLevel = OptimizationLevel.default
  private(set) var languageVersion = MTLLanguageVersion.version3_1
  private(set) var replaces = false

  init() {}

  /// Checks the options of the C ABI.
  init(_ options: MASourceOptions) throws(StatusError) {
    guard let mathMode = MathMode(rawValue: options.mathMode) else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(arg: "mathMode") is \(options.mathMode); it is 0 (safe), 1 (relaxed) or 2 (fast)")
    }
    self.mathMode = mathMode
    if options.languageMajor != 0 || options.languageMinor != 0 {
      let known = Self.versions.first { $0.major == options.languageMajor && $0.minor == options.languageMinor }
      guard let known else {
        let list = Self.versions.map { "\($0.major).\($0.minor)" }.joined(separator: ", ")
        throw StatusError(
          StatusCode.invalidArgument,
          "\(arg: "languageVersion") is \(options.languageMajor).\(options.languageMinor); it is one of \(list)")
      }
      languageVersion = known.version
    }
    try require(
      options.replace <= 1, StatusCode.invalidArgument, "\(arg: "replace") is \(options.replace); it is 0 or 1")
    guard let optimizationLevel = OptimizationLevel(rawValue: options.optimizationLevel) else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(arg: "optimizationLevel") is \(options.optimizationLevel); it is 0 (default) or 1 (size)")
    }
    self.optimizationLevel = optimizationLevel
    replaces = options.replace == 1
    try readMacros(options)
  }

  private static let versions: [(major: UInt32, minor: UInt32, version: MTLLanguageVersion)] = [
    (2, 4, .version2_4), (3, 0, .version3_0), (3, 1, .version3_1),
  ]

  private mutating func readMacros(_ options: MASourceOptions) throws(StatusError) {
    let limit: UInt32 = 4096
    try require(
      options.macroCount <= limit, StatusCode.invalidArgument,
      "\(arg: "macroCount") is \(options.macroCount) macros; it is at most \(limit)")
    if options.macroCount == 0 { return }
    let list = UnsafeRawPointer(try unwrap(options.macros, "macros"))
    var names: Set<String> = []
    for position in 0..<Int(options.macroCount) {
      let macro = list.loadUnaligned(fromByteOffset: position * MemoryLayout<MAMacro>.stride, as: MAMacro.self)
      let name = try read(macro.name, Argument("macros[\(position)]"))
      let argument = Argument("macros.\(name)")
      try require(
        Self.isIdentifier(name), StatusCode.invalidArgument,
        "\(argument): the name of a macro is an identifier, which is letters, digits and _, and no digit first")
      try require(
        !Self.compilersNames.contains(name), StatusCode.invalidArgument, "\(argument): this name is the compiler's")
      try require(
        names.insert(name).inserted, StatusCode.invalidArgument, "\(argument): the macro is given twice")
      guard let value = String(validatingCString: try unwrap(macro.value, argument)) else {
        throw StatusError(StatusCode.invalidArgument, "\(argument): its value is not valid UTF-8")
      }
      if let part = MacroValue.unfinished(value) {
        throw StatusError(
          StatusCode.invalidArgument,
          "\(argument): the value of a macro is one line; \(part) in this one goes on in the next")
      }
      macros.append((name, value))
    }
  }

  /// What the preprocessor keeps for itself, and the words that it takes for operators.
  private static let compilersNames: Set<String> = [
    "defined", "__METAL_VERSION__", "__VA_ARGS__", "__VA_OPT__", "and", "and_eq", "bitand", "bitor", "compl", "not",
    "not_eq", "or", "or_eq", "xor", "xor_eq",
  ]

  private static func isIdentifier(_ name: String) -> Bool {
    func isLetter(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    guard let first = name.utf8.first, isLetter(first) else { return false }
    return name.utf8.allSatisfy { isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// The macros as lines before a source: the same on every device, and what a compiled source is known by in a cache
  /// is its text.
  var definitions: String {
    if macros.isEmpty { return "" }
    return "#line 1 \"macros\"\n" + macros.map { "#define \($0.name) \($0.value)\n" }.joined()
  }

  var compileOptions: MTLCompileOptions {
    let options = MTLCompileOptions()
    options.languageVersion = languageVersion
    options.optimizationLevel =
      switch optimizationLevel {
      case .default: .default
      case .size: .size
      }
    if #available(macOS 15.0, *) {
      options.mathMode =
        switch mathMode {
        case .safe: .safe
        case .relaxed: .relaxed
        case .fast: .fast
        }
      // Apart from the mode, and fast unless set.
      options.mathFloatingPointFunctions = mathMode == .fast ? .fast : .precise
    } else {
      options.fastMathEnabled = mathMode == .fast
    }
    return options
  }
}
