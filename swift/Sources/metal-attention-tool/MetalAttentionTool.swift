import ArgumentParser
import CMetalAttention

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// That of package.json.
private let packageVersion = "0.2.0"

/// The command line tool: a look at the device, the ABI and the kernels, through the C functions alone.
@main
struct MetalAttentionTool: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "metal-attention-tool",
    abstract: "Shows what the metal-attention library sees, and compiles Metal shaders.",
    discussion: """
      Everything here goes through the C functions of metal_attention.h, on the same device that a program gets: \
      the Apple GPU on macOS, on Linux the one that SOFTMETAL_DEVICE names: the SoftMetal software device unless \
      given, or an NVIDIA GPU.

      A command that fails shows the library's message and exits with status 1; a wrong argument exits with status 2.
      """,
    version: "metal-attention-tool \(packageVersion) (ABI version \(MA_ABI_VERSION))",
    subcommands: [DeviceCommand.self, LayoutCommand.self, CompileCommand.self, KernelsCommand.self]
      + softwareDeviceCommands)

  static func main() {
    do {
      var command = try parseAsRoot()
      try command.run()
      try OutputError.check()
    } catch  where exitCode(for: error) == .validationFailure {
      let text = Array((fullMessage(for: error) + "\n").utf8)
      _ = write(STDERR_FILENO, text, text.count)
      // As every program of this package does; ArgumentParser's own is 64.
      exit(withError: ExitCode(2))
    } catch {
      exit(withError: error)
    }
  }
}
