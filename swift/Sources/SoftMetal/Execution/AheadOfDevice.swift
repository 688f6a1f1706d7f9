/// Whether kernels that have the choice ask for memory before they use it. A processor does so by itself, and has few
/// registers to hold what comes: only where `SOFTMETAL_AHEAD` says so, to run what a GPU runs.
package func asksAhead(on device: any MTLDevice) -> Bool {
  (device as? SoftDevice)?.asksAhead ?? false
}
