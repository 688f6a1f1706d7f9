/// Why the device can do no more; nil as long as it can.
package func lossReason(of device: any MTLDevice) -> String? {
  (device as? SoftDevice)?.lossReason
}
