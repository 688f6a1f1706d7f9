/// The text of a shader file, as far as the tool has to read it.
struct ShaderText {
  var text: String

  /// The text with `suffix` added to the names that `common/instantiate.h` makes.
  func suffixed(_ suffix: String) -> String {
    "#define KERNEL_SUFFIX \"\(suffix)\"\n#line 1\n\(text)"
  }
}
