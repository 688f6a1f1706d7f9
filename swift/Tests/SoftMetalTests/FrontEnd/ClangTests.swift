import Glibc
import Testing

@testable import SoftMetal

@Suite struct ClangTests {
  let folder: ShaderFolder

  init() throws {
    folder = try ShaderFolder()
  }

  /// A program that prints `text`.
  func program(_ name: String, _ text: String) throws -> String {
    let path = folder.path + "/" + name
    #expect(Files.write(Array("#!/bin/sh\necho '\(text)'\n".utf8), to: path))
    #expect(chmod(path, 0o700) == 0)
    return path
  }

  func failure() -> ShaderCompilerError? {
    compilerError { try Clang.find(folder.settings) }
  }

  @Test func findsANumberedOne() throws {
    folder.settings.clang = nil
    let clang = try Clang.find(folder.settings)
    #expect(clang.version >= 18)
    #expect(access(clang.path, X_OK) == 0)
  }

  @Test func asksTheOneNamed() throws {
    folder.settings.clang = try program("own", "Debian clang version 18.1.8 (x)\nTarget: y")
    #expect(try Clang.find(folder.settings).version == 18)
    // A changed program is asked again.
    usleep(10_000)
    _ = try program("own", "clang version 21.0.0git")
    #expect(try Clang.find(folder.settings).version == 21)
  }

  @Test func missingOldAndStrangeOnesAreRefused() throws {
    folder.settings.clang = "/nowhere/clang"
    #expect(failure()?.message.has("'/nowhere/clang', which is no program") == true)
    folder.settings.clang = try program("old", "Ubuntu clang version 14.0.0")
    #expect(failure()?.message.has("is clang 14") == true)
    folder.settings.clang = try program("strange", "gcc (Debian) 12.2.0")
    #expect(failure()?.kind == .noCompiler)
    folder.settings.clang = "/bin/false"
    #expect(failure()?.kind == .noCompiler)
  }

  @Test func aCompilerThatBreaksIsAHostFailure() throws {
    folder.settings.clang = try program("broken", "clang version 19.0.0")
    let error = compilerError { try folder.compile(smallSource(1)) }
    #expect(error?.kind == .hostFailure)
  }

  @Test(arguments: [
    ("parser_crash", "ended with signal [0-9]+"), ("llvm_fatal_error", "broke off with an error of its own"),
  ])
  func aCompilerThatBreaksOnASourceSaysSoInOurWords(_ command: String, _ end: String) throws {
    let pragma = "\n#pragma clang __debug \(command)\nint last();\n"
    let error = compilerError { try folder.compile(smallSource(1) + pragma) }
    #expect(error?.kind == .compilerCrash)
    let message = error?.message ?? ""
    #expect(try message.has("the compiler, ") && message.contains(Regex(" \(end) while it compiled this source")))
    #expect(message.has("SOFTMETAL_CLANG"))
    if command == "parser_crash" { #expect(message.hasPrefix("test.metal:4:")) }
    for word in ["Stack dump", "bug report", "lowered.cpp", "llvm::", folder.path] { #expect(!message.has(word)) }
  }

  /// A clang that ends by `command` where one of its arguments is like `pattern`.
  private func dying(_ pattern: String, by command: String) throws -> String {
    let clang = try Clang.find(.environment).path
    let path = folder.path + "/dying"
    let script = """
      #!/bin/sh
      for word; do case $word in \(pattern)) echo 'Stack dump:'; \(command) ;; esac; done
      exec \(clang) "$@"
      """
    #expect(Files.write(Array(script.utf8), to: path))
    #expect(chmod(path, 0o700) == 0)
    return path
  }

  /// 254 is what clang says where a signal ended a part that is a process of its own.
  @Test(arguments: [("kill -11 $$", "ended with signal 11"), ("exit 254", "crashed")])
  func aCompilerThatASignalEndsIsNamedWithIt(_ command: String, _ end: String) throws {
    folder.settings.clang = try dying("*/lowered.cpp", by: command)
    let error = compilerError { try folder.compile(smallSource(2), kernel: "fill") }
    #expect(error?.kind == .compilerCrash)
    #expect(error?.message.has("\(folder.path)/dying, \(end) while it compiled kernel 'fill'.") == true)
    #expect(error?.message.has("Stack dump") == false)
  }

  /// What takes too long is not compiled again in another way.
  @Test func aCompilerThatTakesTooLongIsNamedWithItsLimit() throws {
    folder.settings.clang = try dying("*/lowered.cpp", by: "kill -XCPU $$")
    let error = compilerError { try folder.compile(smallSource(2), kernel: "fill") }
    #expect(error?.kind == .compileFailure)
    let end = "/dying, took more than 300 s of processor time while it compiled kernel 'fill'."
    #expect(error?.message.has(end) == true)
  }

  @Test func childProcesses() throws {
    let outcome = try #require(
      ChildProcess.run("/bin/sh", ["-c", "echo $TMPDIR; echo b 1>&2; exit 3"], temporaryFolder: "/x"))
    #expect(outcome.status == 3)
    #expect(outcome.output == "/x\nb\n")
    #expect(ChildProcess.run("/bin/sh", ["-c", "kill -9 $$"])?.status == 137)
    #expect(ChildProcess.run("/nowhere/program", []) == nil)
    let limits = ChildProcess.Limits(seconds: 1, bytes: 1 << 30)
    #expect(ChildProcess.run("/bin/sh", ["-c", "while :; do :; done"], limits: limits)?.status == 128 + SIGXCPU)
    #expect(ChildProcess.run("/bin/sh", ["-c", "sleep 0.5; ulimit -v"], limits: limits)?.output == "\(1 << 20)\n")
    #expect(ChildProcess.run("/bin/sh", ["-c", "printf '%s' \"$1\"", "x", "a b\"'$"])?.output == "a b\"'$")
  }
}
