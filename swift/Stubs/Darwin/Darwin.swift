// As the importer shows Darwin's C declarations: types where Glibc's differ.

public struct pthread_mutex_t {
  public init() {}
}

public struct pthread_mutexattr_t {
  public init() {}
}

public typealias pthread_key_t = UInt

@discardableResult
public func pthread_mutex_init(
  _ mutex: UnsafeMutablePointer<pthread_mutex_t>, _ attributes: UnsafePointer<pthread_mutexattr_t>?
) -> Int32 { 0 }

@discardableResult
public func pthread_mutex_destroy(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 { 0 }

@discardableResult
public func pthread_mutex_lock(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 { 0 }

@discardableResult
public func pthread_mutex_unlock(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 { 0 }

@discardableResult
public func pthread_key_create(
  _ key: UnsafeMutablePointer<pthread_key_t>, _ destructor: (@convention(c) (UnsafeMutableRawPointer) -> Void)?
) -> Int32 { 0 }

public func pthread_getspecific(_ key: pthread_key_t) -> UnsafeMutableRawPointer? { nil }

@discardableResult
public func pthread_setspecific(_ key: pthread_key_t, _ value: UnsafeRawPointer?) -> Int32 { 0 }

public func free(_ pointer: UnsafeMutableRawPointer?) {}

public func strdup(_ text: UnsafePointer<CChar>?) -> UnsafeMutablePointer<CChar>? { nil }

public func strlen(_ text: UnsafePointer<CChar>) -> Int { 0 }

public typealias socklen_t = UInt32

public var AF_UNIX: Int32 { 1 }
public var SOCK_STREAM: Int32 { 1 }
public var SOL_SOCKET: Int32 { 0xffff }
public var SO_NOSIGPIPE: Int32 { 0x1022 }
public var F_SETFD: Int32 { 2 }
public var F_GETFL: Int32 { 3 }
public var F_SETFL: Int32 { 4 }
public var FD_CLOEXEC: Int32 { 1 }
public var O_NONBLOCK: Int32 { 4 }

@discardableResult
public func socketpair(_ domain: Int32, _ type: Int32, _ protocol: Int32, _ ends: UnsafeMutablePointer<Int32>!) -> Int32
{ 0 }

@discardableResult
public func setsockopt(
  _ socket: Int32, _ level: Int32, _ name: Int32, _ value: UnsafeRawPointer!, _ length: socklen_t
) -> Int32 { 0 }

@discardableResult
public func send(_ socket: Int32, _ bytes: UnsafeRawPointer!, _ length: Int, _ flags: Int32) -> Int { 0 }

public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 { 0 }

public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: Int32) -> Int32 { 0 }

@discardableResult
public func close(_ descriptor: Int32) -> Int32 { 0 }

public var _SC_PAGESIZE: Int32 { 29 }

public func sysconf(_ name: Int32) -> Int { 0 }

public struct timespec {
  public var tv_sec = 0
  public var tv_nsec = 0
  public init() {}
}

public struct clockid_t {}

public var CLOCK_UPTIME_RAW: clockid_t { clockid_t() }

@discardableResult
public func clock_gettime(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>!) -> Int32 { 0 }
