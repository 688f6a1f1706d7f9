import CMetalAttention

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The built-in kernels as the platform package has them, so that tests do not compile them again.
enum ShippedKernels {
  /// Gives the library the archive that METAL_ATTENTION_TEST_KERNELS names, once; without one kernels are compiled here.
  static let areProvided: Bool = {
    guard let path = getenv("METAL_ATTENTION_TEST_KERNELS") else { return false }
    guard let file = fopen(path, "rb") else { fatalError("no kernels at \(String(cString: path))") }
    defer { fclose(file) }
    fseek(file, 0, SEEK_END)
    let length = ftell(file)
    rewind(file)
    let archive = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 16)
    guard fread(archive, 1, length, file) == length, ma_kernels_provide(archive, UInt64(length)) == 0 else {
      fatalError("\(String(cString: path)) is no archive of kernels")
    }
    return true
  }()
}
