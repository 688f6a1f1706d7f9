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
