/// What the making of a pipeline reports besides.
public struct MTLPipelineOption: OptionSet, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// The arguments of the function.
  public static var bindingInfo: MTLPipelineOption { MTLPipelineOption(rawValue: 1) }
}
