/// The library's own shaders, which the build embeds from `shaders/`.
package enum BuiltInSources {
  /// What a device compiles for each of them.
  package static var compilations: [(source: String, options: MTLCompileOptions)] {
    make().map { $0.compilation(among: []) }
  }

  static func make() -> [ShaderSource] {
    KernelFamily.all.flatMap { family in
      family.sources.map {
        ShaderSource(
          name: $0.file, kernels: $0.kernels, needsRowsOfSIMDGroups: family.filesOfSIMDGroups.contains($0.file))
      }
    }
  }
}
