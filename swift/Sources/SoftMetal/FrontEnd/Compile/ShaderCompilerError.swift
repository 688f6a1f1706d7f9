/// Why a shader could not be compiled or loaded.
struct ShaderCompilerError: Error, CustomStringConvertible {
  enum Kind {
    /// The source is wrong; `message` is the whole log.
    case compileFailure
    /// The compiler itself broke on the source.
    case compilerCrash
    /// No usable clang on this machine.
    case noCompiler
    /// A function constant has another type or size than the value given.
    case constantMismatch
    /// The host failed us: a file, a process or a loaded object.
    case hostFailure
  }

  let kind: Kind
  /// For `compileFailure` the log: `file:line:column: error: text`, the user's
  /// line and a caret, for each diagnostic.
  let message: String

  var description: String { message }
}
