import Glibc
import Testing

@testable import SoftMetal

/// A temporary folder with settings that keep the compiler and its cache in it.
final class ShaderFolder {
  let path: String
  var settings: CompilerSettings

  init() throws {
    path = try #require(WorkFolder.make(in: "/tmp"))
    settings = .environment
    settings.cachePath = path + "/cache"
    settings.cacheLimit = 512 << 20
  }

  deinit {
    Self.remove(path)
  }

  static func remove(_ path: String) {
    chmod(path, 0o700)
    for name in Files.names(in: path) where unlink(path + "/" + name) != 0 { remove(path + "/" + name) }
    rmdir(path)
  }

  func compile(
    _ source: String, label: String = "test.metal", kernel: String? = nil
  ) throws -> CompiledShader {
    try ShaderCompiler.compile(source: source, label: label, kernel: kernel, settings: settings)
  }

  /// The log of a source that does not compile; empty when it does.
  func log(_ source: String) throws -> String {
    do {
      _ = try compile(source)
      return ""
    } catch let error as ShaderCompilerError where error.kind == .compileFailure {
      return error.message
    }
  }

  var objects: [String] { Files.names(in: settings.cachePath + "/objects") }
}

/// A source that compiles fast; sources with different values differ.
func smallSource(_ value: Int) -> String {
  """
  #include <metal_stdlib>
  using namespace metal;
  kernel void fill(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = \(value); }
  """
}

/// The error that `body` ends with; nil, and a failed expectation, without one.
func compilerError<Result>(_ body: () throws -> Result) -> ShaderCompilerError? {
  do {
    _ = try body()
  } catch {
    if let error = error as? ShaderCompilerError { return error }
  }
  Issue.record("no ShaderCompilerError was thrown")
  return nil
}
