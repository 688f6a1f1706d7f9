import CMetalAttention

/// What the command line tool asks of the library beside its C functions.
public enum ZeroConstants {
  /// The function constants that a kernel of a registered source needs, as the compiler knows them, each false or 0. Empty
  /// where the source does not compile: making the pipeline says why.
  public static func of(kernel: String, device: UInt32) -> [MAConstant] {
    (try? HandleSpace.devices.open(device, "device").registry.zeroConstants(of: kernel)) ?? []
  }
}
