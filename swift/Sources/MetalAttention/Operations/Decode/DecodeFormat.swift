/// How K or V of a cache is stored: in a dtype, or as codes. What a call asks of it is worked out once, and of numbers
/// alone: an enumeration with payloads is copied by functions of its own.
struct DecodeFormat {
  /// As the kernels' function constant has it: MA_DTYPE_* of what is dense; the bits of a code, plus 8 where fewer than
  /// 8 have a byte of their own.
  let constant: UInt32
  let isCoded: Bool
  /// The elements that matrices have of it: 0 for halves, of which centroids are sums, 1 for bfloats; nil of f32.
  let elements: Int?
  /// Bytes that 8 codes take; 0 of what is dense.
  private let codeWidth: UInt32

  @inline(__always)
  init(_ dtype: DType) {
    constant = dtype.rawValue
    isCoded = false
    elements = dtype == .f16 ? 0 : dtype == .bf16 ? 1 : nil
    codeWidth = 0
  }

  @inline(__always)
  init(_ codes: HadamardFormat) {
    constant = codes.packing == .byte ? codes.bits | 8 : codes.bits
    isCoded = true
    elements = 0
    codeWidth = codes.codeWidth
  }

  /// Whether its codes have more than 4 bits.
  @inline(__always)
  var isWide: Bool { codeWidth > 4 }

  /// Elements of a row of `headDim` values: of the dtype, or bytes.
  @inline(__always)
  func rowSize(_ headDim: UInt32) -> UInt32 { isCoded ? headDim / 8 * codeWidth : headDim }
}
