/// The library's own shaders, which SwiftPM embeds from `shaders/`.
package enum BuiltInSources {
  /// What a device compiles for each of them.
  package static var compilations: [(source: String, options: MTLCompileOptions)] {
    make().map { ($0.expanded, ShaderSource.options) }
  }

  static func make() -> [ShaderSource] {
    [
      ShaderSource(
        name: "kv_cache_copy.metal", embedded: PackageResources.kv_cache_copy_metal,
        kernels: CopyKernel.table.map(\.name)),
      ShaderSource(
        name: "flash_attn_prefill.metal", embedded: PackageResources.flash_attn_prefill_metal,
        kernels: FlashAttnKernel.names),
      ShaderSource(
        name: "flash_attn_mask.metal", embedded: PackageResources.flash_attn_mask_metal, kernels: MaskKernel.names),
      ShaderSource(
        name: "hadamard_quantize_kv.metal", embedded: PackageResources.hadamard_quantize_kv_metal,
        kernels: HadamardKernel.sizedNames(.token)),
      ShaderSource(
        name: "hadamard_quantize_kv_seq.metal", embedded: PackageResources.hadamard_quantize_kv_seq_metal,
        kernels: HadamardKernel.sizedNames(.sequence)),
      ShaderSource(
        name: "hadamard_quantize_kv_any.metal", embedded: PackageResources.hadamard_quantize_kv_any_metal,
        kernels: HadamardKernel.anySizeNames(.token) + HadamardKernel.anySizeNames(.sequence)),
      ShaderSource(
        name: "hadamard_dequantize_kv.metal", embedded: PackageResources.hadamard_dequantize_kv_metal,
        kernels: HadamardKernel.sizedNames(.decode) + HadamardKernel.anySizeNames(.decode)),
    ]
  }
}
