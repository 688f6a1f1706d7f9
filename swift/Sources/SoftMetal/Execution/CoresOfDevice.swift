/// Cores that the threadgroups of a dispatch are spread over.
package func coreCount(of device: any MTLDevice) -> Int? {
  (device as? SoftDevice)?.coreCount
}
