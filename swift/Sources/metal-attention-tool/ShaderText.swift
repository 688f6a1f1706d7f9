import CMetalAttention

/// The text of a shader file, as far as the tool has to read it.
struct ShaderText {
  var text: String

  /// Every function constant that the text declares, as false or 0.
  ///
  /// A kernel cannot be compiled before its constants have values, and to find mistakes any value serves.
  var zeroConstants: [MAConstant] {
    let declaration = #/constant\s+(\w+?)([2-4]?)\s+\w+\s*\[\[\s*function_constant\s*\(\s*(\d+)\s*\)\s*\]\]/#
    return text.matches(of: declaration).compactMap { match in
      guard let index = UInt32(match.3), let dtype = Self.dtypes[String(match.1)] else { return nil }
      var constant = MAConstant()
      constant.index = index
      constant.dtype = UInt32(dtype)
      constant.components = UInt32(match.2) ?? 1
      return constant
    }
  }

  private static let dtypes = [
    "bool": MA_DTYPE_BOOL, "uchar": MA_DTYPE_U8, "char": MA_DTYPE_I8, "ushort": MA_DTYPE_U16, "short": MA_DTYPE_I16,
    "uint": MA_DTYPE_U32, "int": MA_DTYPE_I32, "ulong": MA_DTYPE_U64, "long": MA_DTYPE_I64, "float": MA_DTYPE_F32,
    "half": MA_DTYPE_F16, "bfloat": MA_DTYPE_BF16,
  ]

  /// The text with `suffix` added to the names that `common/instantiate.h` makes.
  func suffixed(_ suffix: String) -> String {
    "#define KERNEL_SUFFIX \"\(suffix)\"\n#line 1\n\(text)"
  }
}
