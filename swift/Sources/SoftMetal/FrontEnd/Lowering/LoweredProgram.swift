/// A source after lowering, but for the tail that describes its kernels.
struct LoweredProgram {
  /// What comes before the source.
  let head: String
  let edited: EditedText
  let list: TokenList
  let origin: SourceOrigin
  let entries: [KernelEntry]
  let constants: [FunctionConstant]
  let derived: [DerivedConstant]
  /// Whether it includes `<metal_stdlib>`.
  let includesLibrary: Bool
  /// As `RareSwizzles` says.
  let usesRareSwizzles: Bool

  /// Where diagnostics are without a tail.
  var map: SourceMap { SourceMap(origin: origin, edited: edited, tailOrigins: []) }

  /// The translation unit that has some of the kernels.
  ///
  /// - Parameters:
  ///   - kernel: the host name of the only kernel; nil for all, or none where there are too many to check.
  ///   - needingLanes: kernels that turned out to need lanes, where the text does not show it.
  func shader(kernel: String?, needingLanes: Set<String>) -> LoweredShader {
    var described = entries.filter { kernel == nil ? !isLong : $0.hostName == kernel }
    for index in described.indices where needingLanes.contains(described[index].hostName) {
      described[index].facts.needsLanes = true
    }
    let tail = Tail(described, constants, derived, list)
    return LoweredShader(
      text: Array(head.utf8) + edited.bytes + Array(tail.text.utf8),
      functionNames: entries.map(\.hostName),
      describedNames: described.map(\.hostName),
      hasLoops: described.contains { !$0.facts.needsLanes },
      includesLibrary: includesLibrary,
      usesMatrices: described.contains { $0.facts.usesMatrices },
      usesRareSwizzles: usesRareSwizzles,
      compilesSeparately: compilesSeparately,
      sourceMap: SourceMap(origin: origin, edited: edited, tailOrigins: tail.origins))
  }

  /// Tokens that the kernels reach: clang takes about 0.1 ms for each.
  private var size: Int { entries.reduce(0) { $0 + $1.facts.size } }

  /// Whether all kernels together take clang seconds.
  private var isLong: Bool { entries.count > 400 && size > 30_000 }

  /// Whether clang takes longer for the code of a kernel than for reading the file once more, about 70 ms, or too long
  /// for all of them.
  private var compilesSeparately: Bool { entries.count > 1 && size > 700 * entries.count || isLong }
}
