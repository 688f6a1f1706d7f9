/// A shader source after compilation: the bytes of a shared object, and what
/// can be known of it without loading it.
struct CompiledShader: Sendable {
  /// File name that diagnostics carry.
  let label: String
  /// The ELF shared object; it exports `sm_object`. Empty for a library whose
  /// kernels are compiled one by one.
  let object: [UInt8]
  /// Host names of the kernels, in the order of the source.
  let functionNames: [String]
  /// As in `CacheEntry.Metadata`.
  var whyThreads = ""
  /// Warnings in the form of `ShaderCompilerError.message`; empty if none.
  let log: String
  /// Whether nothing had to be compiled.
  let wasCached: Bool
}

extension CompiledShader {
  init(label: String, _ content: CacheEntry.Content, wasCached: Bool) {
    self.init(
      label: label, object: content.object, functionNames: content.metadata.functionNames,
      whyThreads: content.metadata.whyThreads, log: content.metadata.log, wasCached: wasCached)
  }
}
