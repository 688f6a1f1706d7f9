/// The library's own shaders, which SwiftPM embeds from `shaders/`.
package enum BuiltInSources {
  /// What a device compiles for each of them.
  package static var compilations: [(source: String, options: MTLCompileOptions)] {
    make().map { ($0.expanded, ShaderSource.options) }
  }

  static func make() -> [ShaderSource] {
    [
      ShaderSource(
        name: "kv_cache_copy.metal",
        kernels: CopyKernel.table.map(\.name)),
      ShaderSource(
        name: "flash_attn_prefill.metal",
        kernels: FlashAttnKernel.names),
      ShaderSource(
        name: "flash_attn_mask.metal", kernels: MaskKernel.names),
      ShaderSource(
        name: "hadamard_quantize_kv.metal",
        kernels: HadamardKernel.sizedNames(.token)),
      ShaderSource(
        name: "hadamard_quantize_kv_seq.metal",
        kernels: HadamardKernel.sizedNames(.sequence)),
      ShaderSource(
        name: "hadamard_quantize_kv_any.metal",
        kernels: HadamardKernel.anySizeNames(.token) + HadamardKernel.anySizeNames(.sequence)),
      ShaderSource(
        name: "hadamard_dequantize_kv.metal",
        kernels: HadamardKernel.sizedNames(.decode) + HadamardKernel.anySizeNames(.decode)),
    ]
  }
}
