import Glibc

/// The headers of the language, parsed once for each set of flags: clang reads the result faster than the text. It lies
/// beside the headers, and goes with them.
enum PrecompiledHeader {
  /// What clang is told to read it first: it needs no check, since the file's name stands for all that it is made of.
  static func inclusion(flags: [String], headers: String, clang: Clang, work: WorkFolder) -> [String] {
    guard let path = path(flags: flags, headers: headers, clang: clang, work: work) else { return [] }
    return ["-Xclang", "-fno-validate-pch", "-include-pch", path]
  }

  /// The file for `flags`, made where it is missing. Nil where that fails.
  private static func path(flags: [String], headers: String, clang: Clang, work: WorkFolder) -> String? {
    // It names the headers that it was made of by where they lay, under the name that they were asked for by.
    guard let place = realpath(headers, nil) else { return nil }
    defer { free(place) }
    var hash = Hash128()
    hash.combine(headers)
    hash.combine(String(cString: place))
    hash.combine(clang.identity)
    for flag in flags { hash.combine(flag) }
    let path = "\(headers)/\(hash.name).pch"
    let sumPath = path + ".sum"
    if IntactFiles.contain(path, { sum(of: $0) == Files.read(sumPath) }) { return path }
    let output = work.path + "/library.pch"
    let newSum = work.path + "/library.pch.sum"
    // No assembler runs behind -S: for a GPU that would be NVIDIA's.
    let arguments =
      flags + ["-isystem", headers, "-S", "-Xclang", "-emit-pch", headers + "/softmetal_library", "-o", output]
    guard let outcome = ChildProcess.run(clang.path, arguments, temporaryFolder: work.path),
      outcome.status ?? 0 == 0, let bytes = Files.read(output), Files.write(sum(of: bytes), to: newSum),
      rename(newSum, sumPath) == 0, rename(output, path) == 0
    else { return nil }
    return path
  }

  private static func sum(of bytes: [UInt8]) -> [UInt8] {
    var hash = Hash128()
    hash.combine(bytes)
    return Array(hash.name.utf8)
  }
}
