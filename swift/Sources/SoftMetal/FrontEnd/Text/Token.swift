/// A lexical token of a C++ source, without its comments and white space.
struct Token {
  enum Kind: UInt8 {
    case identifier
    case number
    case string
    case character
    case punctuation
    /// A whole preprocessor line, continuations included.
    case directive
  }

  let kind: Kind
  /// Byte range in the source.
  let range: Range<Int>
  /// The spelling of an identifier, a number or a punctuator; else empty.
  let text: String
}
