/// Writes commands into a command buffer.
public protocol MTLCommandEncoder: AnyObject {
  var label: String? { get set }

  /// Ends the encoder; nothing may be encoded with it afterwards.
  func endEncoding()
}
