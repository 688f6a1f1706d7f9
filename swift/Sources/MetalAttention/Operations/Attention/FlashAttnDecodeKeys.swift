/// The kernels that decode a quantized cache for prefill, by head size.
enum FlashAttnDecodeKeys {
  static let family = KernelFamily(
    sources: [("flash_attn_prefill_decode.metal", table.names)],
    // The format of the codes, as `DecodeFormat.constant` has it.
    constants: [.number(430, bits: 4)],
    headDims: headDims,
    filesOfSIMDGroups: ["flash_attn_prefill_decode.metal"])

  private static let headDims = FlashAttnKernel.headDims.map(UInt32.init)
  private static let table = KernelTable(headDims.count) { "flash_attn_prefill_decode_d\(headDims[$0[0]])" }
  private static let indices = table.indices

  static func slot(_ headDim: Int32, _ format: DecodeFormat) throws(StatusError) -> PipelineSlot {
    guard let size = FlashAttnKernel.headDims.firstIndex(of: headDim), let kernel = indices[size] else {
      throw StatusError(
        StatusCode.unsupported, "\(arg: "D") is \(headDim); supported: \(FlashAttnKernel.family.headDimList)")
    }
    return PipelineSlot(kernel: kernel, variant: Int(format.constant))
  }
}
