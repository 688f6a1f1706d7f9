/// How the kernel of a pipeline runs on the software device: `loop`, `vectors`, or `threads` with the reason.
package func executor(of state: any MTLComputePipelineState) -> String {
  (state as? SoftComputePipelineState)?.executor ?? ""
}
