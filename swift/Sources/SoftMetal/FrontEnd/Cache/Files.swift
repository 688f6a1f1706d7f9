import Glibc

/// Whole files at once, by system calls.
enum Files {
  /// The bytes of a file, or nil when it cannot be read.
  static func read(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    return read(descriptor, expecting: Int(status.st_size))
  }

  /// The rest of an open file; `expecting` is a guess at its size.
  static func read(_ descriptor: Int32, expecting size: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: max(size, 0) + 1)
    var count = 0
    while true {
      if count == bytes.count { bytes += [UInt8](repeating: 0, count: max(bytes.count, 4096)) }
      let got = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(descriptor, buffer.baseAddress.map { $0 + count }, buffer.count - count)
      }
      if got > 0 {
        count += got
      } else if got == 0 {
        bytes.removeLast(bytes.count - count)
        return bytes
      } else if errno != EINTR {
        return nil
      }
    }
  }

  /// Writes a file that only its owner can read. False on failure.
  static func write(_ bytes: [UInt8], to path: String) -> Bool {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    let isWritten = write(bytes, to: descriptor)
    return close(descriptor) == 0 && isWritten
  }

  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var offset = 0
    while offset < bytes.count {
      let written = bytes.withUnsafeBytes { buffer in
        Glibc.write(descriptor, buffer.baseAddress.map { $0 + offset }, buffer.count - offset)
      }
      if written > 0 {
        offset += written
      } else if written < 0, errno != EINTR {
        return false
      }
    }
    return true
  }

  /// Names in a folder, without `.` and `..`.
  static func names(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Removes a folder of plain files.
  static func removeFolder(_ folder: String) {
    for name in names(in: folder) { unlink(folder + "/" + name) }
    rmdir(folder)
  }

  /// Path, size and time of last change of a file: enough to notice another
  /// one in its place. Nil when there is none.
  static func identity(_ path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return "\(path):\(status.st_size):\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
  }

  /// `path` where a program lies there that this process may run.
  static func executable(_ path: String) -> String? {
    access(path, X_OK) == 0 && identity(path) != nil ? path : nil
  }

  /// What the system says about the last failed call.
  static var lastError: String { String(cString: strerror(errno)) }

  static func environment(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// A path from the root, which no program takes for an option and which stays when the working folder changes.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/") else { return path }
    guard let folder = getcwd(nil, 0) else { return "./" + path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }
}
