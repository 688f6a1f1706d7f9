import Glibc
import Testing

@testable import SoftMetal

@Suite struct LinkerTests {
  let folder: ShaderFolder

  init() throws {
    folder = try ShaderFolder()
    folder.settings.clang = try Clang.find(.environment).path
    folder.settings.searchPath = [folder.path]
  }

  /// Puts a program `ld` on the search path, which alone is there.
  private func makeLinker(_ script: String) {
    let path = folder.path + "/ld"
    #expect(Files.write(Array("#!/bin/sh\n\(script)\n".utf8), to: path))
    #expect(chmod(path, 0o700) == 0)
  }

  @Test func theOneOnTheSearchPathLinks() throws {
    let linker = try #require(CompilerSettings.environment.program("ld"))
    makeLinker("echo linked > \(folder.path)/note; exec \(linker) \"$@\"")
    let shader = try folder.compile(smallSource(1), kernel: "fill")
    #expect(shader.functionNames == ["fill"])
    #expect(Files.read(folder.path + "/note") == Array("linked\n".utf8))
    _ = try LoadedShader(shader, constants: [:])
  }

  @Test(arguments: [nil, "exit 3", "exit 0", "kill -9 $$"])
  func clangDoesWhereItIsMissingOrFails(_ script: String?) throws {
    if let script { makeLinker(script) }
    let shader = try folder.compile(smallSource(2), kernel: "fill")
    #expect(shader.log == "")
    _ = try LoadedShader(shader, constants: [:])
  }
}
