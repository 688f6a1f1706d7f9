import ArgumentParser

/// Prints the names of the kernels that the library has built in.
struct KernelsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kernels",
    abstract: "Print the names of the built-in kernels, one a line.",
    discussion: "These are the names that a pipeline can be made of without registering a source.")

  func run() throws {
    for name in try OpenDevice().kernelNames() {
      print(name)
    }
  }
}
