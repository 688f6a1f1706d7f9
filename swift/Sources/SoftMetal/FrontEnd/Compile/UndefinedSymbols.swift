import Glibc

/// Compiled objects are linked against nothing: the mathematical functions of the C library are all that they find when
/// they are loaded, in whatever process.
enum UndefinedSymbols {
  /// - Throws: `ShaderCompilerError` that names what an object lacks.
  static func check(_ object: [UInt8], label: String) throws {
    let missing = names(in: object).filter { dlsym(LoadedShader.mathematics, $0) == nil }
    guard !missing.isEmpty else { return }
    let lines = missing.map { "\(label): error: \(reason($0))\n" }
    throw ShaderCompilerError(
      kind: .compileFailure, message: lines.joined() + DiagnosticText.count(missing.count))
  }

  /// Routines of the compiler's own library are named for the formats that they convert: `df` is double.
  private static func reason(_ symbol: String) -> String {
    symbol.hasPrefix("__") && symbol.contains("df")
      ? "'double' is not supported in Metal: the program converts from or to it by '\(symbol)'"
      : "undefined symbol '\(symbol)': it is declared and used, but never defined"
  }

  // MARK: ELF

  private static let dynamicSymbols: UInt32 = 11
  private static let global: UInt8 = 1

  /// The undefined symbols of a 64-bit ELF object, weak ones left out. Empty for a file of another kind.
  static func names(in object: [UInt8]) -> [String] {
    object.withUnsafeBytes { bytes in
      guard bytes.count > MemoryLayout<Elf64_Ehdr>.size else { return [] }
      let header = bytes.loadUnaligned(as: Elf64_Ehdr.self)
      // No offset of a file reaches past its end, whatever a broken header says.
      func bounded(_ value: UInt64) -> Int { min(Int(clamping: value), bytes.count) }
      let sections = (0..<Int(header.e_shnum)).compactMap { index in
        load(Elf64_Shdr.self, bytes, bounded(header.e_shoff) + index * Int(header.e_shentsize))
      }
      guard let table = sections.first(where: { $0.sh_type == dynamicSymbols }), Int(table.sh_link) < sections.count
      else { return [] }
      let names = bounded(sections[Int(table.sh_link)].sh_offset)
      let size = MemoryLayout<Elf64_Sym>.stride
      return (0..<bounded(table.sh_size) / size).compactMap { index in
        guard let symbol = load(Elf64_Sym.self, bytes, bounded(table.sh_offset) + index * size),
          symbol.st_shndx == 0, symbol.st_info >> 4 == global
        else { return nil }
        let name = bytes.dropFirst(names + Int(symbol.st_name)).prefix { $0 != 0 }
        return name.isEmpty ? nil : String(decoding: name, as: UTF8.self)
      }
    }
  }

  private static func load<T>(_ type: T.Type, _ bytes: UnsafeRawBufferPointer, _ offset: Int) -> T? {
    guard offset >= 0, offset <= bytes.count - MemoryLayout<T>.size else { return nil }
    return bytes.loadUnaligned(fromByteOffset: offset, as: type)
  }
}
