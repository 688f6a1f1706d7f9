/// Why there is no device.
package struct DeviceError: Error, CustomStringConvertible {
  package let description: String
  /// Whether the name of the device is none.
  package let isOfName: Bool

  init(_ description: String, isOfName: Bool = false) {
    self.description = description
    self.isOfName = isOfName
  }
}
