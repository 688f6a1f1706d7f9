import ArgumentParser
import CMetalAttention

/// Compiles every entry point of shader files and prints the diagnostics.
struct CompileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compile",
    abstract: "Compile every entry point of Metal shader files.",
    discussion: """
      Each file is registered on a device of its own, as a program would do it, and a pipeline is made of each kernel \
      in it. One line a kernel says what its pipeline allows and what runs it; a kernel that does not compile shows the compiler's \
      messages. The status is 0 when every kernel of every file compiled, and 1 otherwise.

      A file may include others by #include "PATH", from its own folder on.

      Function constants that are not given are false or 0. The files of the library itself can be compiled too: \
      shaders/common/instantiate.h gives their kernels other names for it, since a device knows each name once.

      EXAMPLE: metal-attention-tool compile scale.metal --constant 0=bool:true --constant 1=f32:0.5
      """)

  @Argument(help: "Metal shader files.")
  var files: [String]

  @Option(
    name: .customLong("constant"), parsing: .singleValue,
    help: ArgumentHelp(
      "A function constant for all kernels; may be repeated. TYPE is bool, u8, i8, u16, i16, u32, i32, u64, i64, f16, "
        + "bf16 or f32; a vector has 2 to 4 values.",
      valueName: "INDEX=TYPE:VALUE[,VALUE...]"))
  var constants: [ConstantArgument] = []

  func validate() throws {
    guard !files.isEmpty else { throw ValidationError("Give at least one file.") }
  }

  func run() throws {
    var failures = 0
    for file in files {
      print(file)
      do {
        failures += try compile(file: file)
      } catch {
        failures += 1
        report(error)
      }
    }
    if failures > 0 { throw ExitCode.failure }
  }

  /// The number of kernels that failed.
  private func compile(file: String) throws -> Int {
    guard let text = try ShaderFile.text(file) else { throw ValidationError("\(file) cannot be read") }

    let device = try OpenDevice()
    let builtIn = Set(try device.kernelNames())
    for included in try IncludedFiles(in: text, name: file).texts {
      // An empty one is no source, and a blank one is.
      try device.register(source: included.text.isEmpty ? "\n" : included.text, name: included.name)
    }
    try device.register(source: text, name: file, macro: "KERNEL_SUFFIX", value: "\"\(Self.suffix)\"")
    try device.compileRegisteredSources()
    let kernels = try device.kernelNames().filter { !builtIn.contains($0) }
    guard !kernels.isEmpty else { throw ValidationError("\(file) has no kernel") }

    let given = constants.map(\.constant)
    var failures = 0
    var lastMessage = ""
    for kernel in kernels {
      let others = device.zeroConstants(of: kernel).filter { zero in !given.contains { $0.index == zero.index } }
      do {
        let (info, executor) = try device.compile(kernel: kernel, constants: given + others)
        print("  ok      \(original(kernel)): \(describe(info)); runs as \(executor)")
      } catch {
        failures += 1
        print("  failed  \(original(kernel))")
        // A mistake outside the kernels gives every one of them the same log.
        let message = String(describing: error)
        if message != lastMessage { report(error) }
        lastMessage = message
      }
    }
    return failures
  }

  /// Tells the kernels that `common/instantiate.h` makes of a file of the library from those that are built in.
  private static let suffix = "_of_this_file"

  /// The kernel's name in the file.
  private func original(_ kernel: String) -> String {
    kernel.hasSuffix(Self.suffix) ? String(kernel.dropLast(Self.suffix.count)) : kernel
  }

  private func describe(_ info: MAPipelineInfo) -> String {
    "up to \(info.maxTotalThreadsPerThreadgroup) threads, SIMD width \(info.threadExecutionWidth), "
      + "\(info.staticThreadgroupMemoryLength) bytes of threadgroup memory"
  }

  private func report(_ error: any Error) {
    for line in String(describing: error).split(separator: "\n", omittingEmptySubsequences: false) {
      print("    \(line)")
    }
  }
}
