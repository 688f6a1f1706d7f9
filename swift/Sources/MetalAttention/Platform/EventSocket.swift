#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The library's end of a pair of sockets, over which an event loop at the
/// other end hears that something has happened.
final class EventSocket: Sendable {
  private let descriptor: Int32

  private init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Both ends; the second is the caller's to close. Nil when the process may open no more files.
  static func makePair() -> (EventSocket, Int32)? {
    var ends: (Int32, Int32) = (-1, -1)
    let status = withUnsafeMutableBytes(of: &ends) { bytes in
      socketpair(AF_UNIX, streamType, 0, bytes.assumingMemoryBound(to: Int32.self).baseAddress)
    }
    guard status == 0 else { return nil }
    #if canImport(Darwin)
      for end in [ends.0, ends.1] {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      }
      var isOn: Int32 = 1
      setsockopt(ends.0, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
    #endif
    return (EventSocket(ends.0), ends.1)
  }

  /// Sends a byte. Where the socket is full the other end has enough to read;
  /// where that is closed nobody listens.
  func signal() {
    var byte: UInt8 = 0
    #if canImport(Darwin)
      send(descriptor, &byte, 1, 0)
    #else
      send(descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
    #endif
  }

  /// On Linux as the ends are to be, so that no program that another thread starts meanwhile has them.
  private static var streamType: Int32 {
    #if canImport(Darwin)
      SOCK_STREAM
    #else
      Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    #endif
  }
}
