import Glibc

/// PTX of kernels that are launched before the dispatch before them has ended.
///
/// A stream launches a kernel once all before it has ended and its memory is written: about 2 us, in which the GPU does
/// nothing. From compute capability 9.0 on a kernel can come to multiprocessors that are free, and wait for that by an
/// instruction of its own (programmatic dependent launch). Entries have a comment in its place:
/// `CSoftMetal/msl/softmetal_nvptx`.
enum PtxOverlap {
  /// - Parameter ptx: ends in a NUL.
  /// - Returns: the same with the instruction; nil where it has no place for it.
  static func enabled(_ ptx: [CChar]) -> [CChar]? {
    guard let waiting = replacing("// sm_wait_for_dispatches", by: "griddepcontrol.wait;", in: ptx) else { return nil }
    return replacing(".target sm_80", by: ".target sm_90", in: waiting)
  }

  /// Nil where there is no such place.
  private static func replacing(_ place: String, by replacement: String, in text: [CChar]) -> [CChar]? {
    let replacement = replacement.utf8.map { CChar(bitPattern: $0) }
    var (result, isFound): ([CChar], Bool) = ([], false)
    text.withUnsafeBufferPointer { text in
      guard var rest = text.baseAddress else { return }
      let end = rest + text.count
      while let start = strstr(rest, place).map({ UnsafePointer($0) }) {
        result += UnsafeBufferPointer(start: rest, count: start - rest)
        result += replacement
        rest = start + strlen(place)
        isFound = true
      }
      result += UnsafeBufferPointer(start: rest, count: end - rest)
    }
    return isFound ? result : nil
  }
}
