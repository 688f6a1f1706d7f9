extension Packing {
  /// Bits of a code, as far as there are kernels.
  var widths: [UInt32] {
    switch self {
    case .nibble: [4]
    case .byte: [5, 6, 8]
    case .dense: [2, 3, 5, 6]
    }
  }
}

/// Width and packing of the codes of a quantized cache.
struct HadamardFormat {
  let packing: Packing
  /// Bits of a code.
  let bits: UInt32

  init(bits: UInt32, packing: UInt32) throws(StatusError) {
    guard let known = Packing(rawValue: packing), known.widths.contains(bits) else {
      let supported = Packing.allCases.map { packing in
        "packing \(packing.rawValue) (\(packing)): \(packing.widths.map { "\($0)" }.joined(separator: ", ")) bits"
      }
      throw StatusError(
        StatusCode.unsupported,
        "\(arg: "codebook_bits") \(bits) with \(arg: "packing") \(packing) has no kernel; supported: \(supported.joined(separator: "; "))"
      )
    }
    self.packing = known
    self.bits = bits
  }

  /// Bits of a row that a code takes.
  var codeWidth: UInt32 { packing == .byte ? 8 : bits }
}
