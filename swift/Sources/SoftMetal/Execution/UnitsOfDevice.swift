/// Cores that the threadgroups of a dispatch are spread over.
package func coreCount(of device: any MTLDevice) -> Int? {
  (device as? SoftDevice)?.coreCount
}

/// Whether products of 8x8 matrices have units of their own, many times as fast as those of other arithmetic.
package func hasMatrixUnits(_ device: any MTLDevice) -> Bool {
  (device as? SoftDevice)?.hasMatrixUnits ?? false
}
