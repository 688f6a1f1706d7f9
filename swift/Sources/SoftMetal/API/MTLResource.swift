/// Memory of a device.
public protocol MTLResource: AnyObject {
  var label: String? { get set }

  /// Bytes that the resource takes, alignment included.
  var allocatedSize: Int { get }
  var storageMode: MTLStorageMode { get }
}
