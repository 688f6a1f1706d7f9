import Glibc

/// PTX with the values of function constants in it.
///
/// A kernel is compiled once for all values, with variables for them. Where a load of a variable becomes a number, the
/// driver leaves out the branches that are not taken, and the registers of what lies in them.
enum PtxConstants {
  /// - Parameters:
  ///   - ptx: ends in a NUL.
  ///   - values: of variables, by their symbols.
  /// - Returns: the same with a NUL, with a `mov` for each load of a whole value; any other load stays.
  static func settled(
    _ ptx: UnsafePointer<CChar>, _ values: [(symbol: String, bytes: UnsafeRawBufferPointer)]
  ) -> [CChar] {
    let known = Dictionary(values.map { ($0.symbol, $0.bytes) }) { first, _ in first }
    var result: [CChar] = []
    let length = strlen(ptx)
    result.reserveCapacity(length + 1)
    var copied = 0
    var place = strstr(ptx, marker)
    while let bracket = place {
      let (start, end) = lineAround(bracket, in: ptx)
      if let moves = moves(String(decoding: bytes(ptx, start..<end), as: UTF8.self), known) {
        result += UnsafeBufferPointer(start: ptx + copied, count: start - copied)
        result += moves.utf8.map { CChar(bitPattern: $0) }
        copied = end
      }
      place = strstr(ptx + end, marker)
    }
    result += UnsafeBufferPointer(start: ptx + copied, count: length - copied)
    result.append(0)
    return result
  }

  /// What begins the address of such a variable: `[sm_constant_0]`, `[sm_defined_0]`.
  private static let marker = "[sm_"

  private static func bytes(_ ptx: UnsafePointer<CChar>, _ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: ptx + range.lowerBound, count: range.count)
  }

  /// The line of a place, without its end.
  private static func lineAround(
    _ place: UnsafePointer<CChar>, in ptx: UnsafePointer<CChar>
  ) -> (start: Int, end: Int) {
    let newline = CChar(bitPattern: UInt8(ascii: "\n"))
    var start = place - ptx
    while start > 0, ptx[start - 1] != newline { start -= 1 }
    var end = place - ptx
    while ptx[end] != 0, ptx[end] != newline { end += 1 }
    return (start, end)
  }

  /// `ld.global.nc.v2.u32 {%r1, %r2}, [sm_constant_0+8];` as moves of values; nil for any other line.
  private static func moves(_ line: String, _ known: [String: UnsafeRawBufferPointer]) -> String? {
    let words = line.split { " \t,{}[];".contains($0) }.map(String.init)
    guard let parts = words.first?.split(separator: "."), parts.first == "ld", parts.dropFirst().first == "global",
      let type = parts.last, let width = Int(type.dropFirst()), let place = words.last?.split(separator: "+"),
      let symbol = place.first, let value = known[String(symbol)]
    else { return nil }
    var offset = place.count > 1 ? Int(place[1]) ?? value.count : 0
    var text = ""
    for register in words.dropFirst().dropLast() {
      guard let move = move(register, value, offset, bytes: width / 8, isSigned: type.first == "s") else { return nil }
      text += "\t" + move
      offset += width / 8
    }
    return text.isEmpty ? nil : text
  }

  /// Of `bytes` bytes, which are extended to those of the register.
  private static func move(
    _ register: String, _ value: UnsafeRawBufferPointer, _ offset: Int, bytes: Int, isSigned: Bool
  ) -> String? {
    guard [1, 2, 4, 8].contains(bytes), offset >= 0, offset <= value.count - bytes else { return nil }
    var bits: UInt64 = 0
    for i in 0..<bytes { bits |= UInt64(value[offset + i]) << (8 * i) }
    if isSigned, bits >> (8 * bytes - 1) & 1 != 0, bytes < 8 { bits |= UInt64.max << (8 * bytes) }
    func digits(_ count: Int) -> String {
      let text = String(bits & (count == 16 ? UInt64.max : 1 << (4 * count) - 1), radix: 16)
      return String(repeating: "0", count: count - text.count) + text
    }
    switch register.drop(while: { $0 == "%" }).prefix(while: \.isLetter) {
    case "rs": return "mov.b16 \(register), 0x\(digits(4));"
    case "r": return "mov.b32 \(register), 0x\(digits(8));"
    case "rd": return "mov.b64 \(register), 0x\(digits(16));"
    case "f": return "mov.f32 \(register), 0f\(digits(8));"
    case "fd": return "mov.f64 \(register), 0d\(digits(16));"
    default: return nil
    }
  }
}
