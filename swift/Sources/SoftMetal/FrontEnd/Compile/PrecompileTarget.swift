/// What shaders are compiled ahead of time for.
package enum PrecompileTarget: Hashable, Sendable {
  case processor(ProcessorLevel)
  /// NVIDIA GPUs.
  case nvptx

  package static let all = ProcessorLevel.allCases.map { PrecompileTarget.processor($0) } + [.nvptx]

  /// By its folder's name.
  package init?(_ name: String) {
    guard let target = Self.all.first(where: { $0.folder == name }) else { return nil }
    self = target
  }

  /// The folder of its entries in an archive.
  package var folder: String {
    switch self {
    case .processor(let level): level.rawValue
    case .nvptx: PrecompiledShaders.gpuFolder
    }
  }

  var choice: Executor.Choice { self == .nvptx ? .nvptx : .usual }

  /// That the code for the CPU is for: tables alone for a GPU, which every machine reads.
  var level: ProcessorLevel {
    switch self {
    case .processor(let level): level
    case .nvptx: .v3
    }
  }
}
