import ArgumentParser

/// Prints name, backend and limits of the default device.
struct DeviceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Print name, backend and limits of the default device.",
    discussion: """
      The backend is "Metal" for an Apple GPU and "SoftMetal" for the software device, which runs the same shaders \
      on the CPU, and for NVIDIA GPUs. Sizes are in bytes.
      """)

  func run() throws {
    let info = try OpenDevice().info()
    let threads = info.maxThreadsPerThreadgroup
    let rows: [(String, String)] = [
      ("name", text(info.name)),
      ("backend", text(info.backend)),
      ("registry ID", String(info.registryID)),
      ("unified memory", info.hasUnifiedMemory != 0 ? "yes" : "no"),
      ("maximum buffer length", String(info.maxBufferLength)),
      ("recommended working set", String(info.recommendedMaxWorkingSetSize)),
      ("currently allocated", String(info.currentAllocatedSize)),
      ("threadgroup memory", String(info.maxThreadgroupMemoryLength)),
      ("threads per threadgroup", "\(threads.0) x \(threads.1) x \(threads.2)"),
    ]
    for (label, value) in rows {
      print("\(label.padded(to: 24)) \(value)")
    }
  }

  /// The text in a C array of characters, up to its NUL.
  private func text<Characters>(_ characters: Characters) -> String {
    withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
