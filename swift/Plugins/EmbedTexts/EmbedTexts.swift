import Foundation
import PackagePlugin

/// Embeds text files in a target: the shaders in the library, the headers of
/// the shading language in SoftMetal. They stay where readers look for them,
/// outside of the target's folder.
@main
struct EmbedTexts: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let package = context.package.directoryURL
    let sources: [String]
    switch target.name {
    case "MetalAttention": sources = ["../shaders", "Sources/CMetalAttention/include/ShaderTypes.h"]
    case "SoftMetal":
      let include = "Sources/CSoftMetal/include"
      let headers = "Sources/CSoftMetal"
      sources = [
        "\(headers)/msl", "\(include)/softmetal.h", "\(include)/softmetal_worker.h",
      ]
    default:
      Diagnostics.error("EmbedTexts has no texts for the target \(target.name)")
      return []
    }
    let roots = sources.map { package.appending(path: $0).standardizedFileURL }
    let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedTexts.swift")
    return [
      .buildCommand(
        displayName: "Embedding texts in \(target.name)",
        executable: try context.tool(named: "embed-texts").url,
        arguments: [output.path] + roots.map(\.path),
        inputFiles: roots.flatMap(files),
        outputFiles: [output])
    ]
  }

  /// The file itself, or all files of a folder: a change in one builds anew.
  private func files(_ root: URL) -> [URL] {
    let paths = (try? FileManager.default.subpathsOfDirectory(atPath: root.path)) ?? []
    // A file has none, which Foundation on Linux takes for no error.
    if paths.isEmpty { return [root] }
    return paths.map { root.appending(path: $0) }
  }
}
