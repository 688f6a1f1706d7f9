import ArgumentParser

/// The command line tool: a look at the device, the ABI and the kernels, through the C functions alone.
@main
struct MetalAttentionTool: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "metal-attention-tool",
    abstract: "Shows what the metal-attention library sees, and compiles Metal shaders.",
    discussion: """
      Everything here goes through the C functions of metal_attention.h, on the same device that a program gets: \
      the Apple GPU on macOS, the SoftMetal software device on Linux.

      A command that fails shows the library's message and exits with status 1; a wrong argument exits with status 64.
      """,
    subcommands: [DeviceCommand.self, LayoutCommand.self, CompileCommand.self, KernelsCommand.self]
      + softwareDeviceCommands)
}
