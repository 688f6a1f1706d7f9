import Glibc
import Synchronization

/// One NVIDIA GPU as one device uses it: a context of its own, so that a fault ends no other's.
final class CudaContext: MemoryMapping, @unchecked Sendable {
  let driver: CudaDriver
  let name: String
  /// Bytes.
  let totalMemory: Int
  let multiprocessors: Int
  /// Whether a kernel can be launched before what it waits for has ended.
  let overlapsDispatches: Bool
  private let context: CudaDriver.Pointer
  /// Why the context can do no more; nil as long as it can.
  private let end = Mutex<String?>(nil)
  /// Why drivers, by their library, open no GPU in this process any more.
  private static let ended = Mutex<[UInt: String]>([:])

  /// What gives back memory that is registered until the context is destroyed.
  private let kept = Mutex<[() -> Void]>([])
  /// Memory that others had registered, which stays so.
  private let foreign = Mutex<Set<UInt>>([])

  private enum Attribute {
    static let multiprocessors: Int32 = 16
    static let unifiedAddressing: Int32 = 41
    static let major: Int32 = 75
    static let minor: Int32 = 76
    static let hostPointers: Int32 = 91
  }

  /// The GPUs of a driver.
  static func count(_ driver: CudaDriver) throws(DeviceError) -> Int {
    var count: Int32 = 0
    let status = driver.deviceCount(&count)
    guard status == CudaStatus.success else {
      throw DeviceError("the NVIDIA driver does not tell its GPUs: cuDeviceGetCount gave \(driver.describe(status))")
    }
    return Int(count)
  }

  /// - Parameter ordinal: of the GPU, from 0.
  /// - Throws: `DeviceError`.
  init(_ driver: CudaDriver, ordinal: Int) throws(DeviceError) {
    func check(_ status: CudaDriver.Status, _ call: String) throws(DeviceError) {
      guard status == CudaStatus.success else {
        throw DeviceError("NVIDIA GPU \(ordinal): \(call) gave \(driver.describe(status))")
      }
    }
    if let reason = Self.ended.withLock({ $0[driver.identity] }) {
      throw DeviceError("NVIDIA GPU \(ordinal): \(reason); start another process")
    }
    var device: Int32 = 0
    try check(driver.device(&device, Int32(clamping: ordinal)), "cuDeviceGet")
    func attribute(_ number: Int32) throws(DeviceError) -> Int {
      var value: Int32 = 0
      try check(driver.deviceAttribute(&value, number, device), "cuDeviceGetAttribute")
      return Int(value)
    }
    var characters = [CChar](repeating: 0, count: 128)
    try check(driver.deviceName(&characters, Int32(characters.count), device), "cuDeviceGetName")
    name = String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    let (major, minor) = (try attribute(Attribute.major), try attribute(Attribute.minor))
    guard major >= 8 else {
      throw DeviceError("\(name) is of compute capability \(major).\(minor); kernels are compiled for 8.0 or newer")
    }
    guard try attribute(Attribute.unifiedAddressing) != 0, try attribute(Attribute.hostPointers) != 0 else {
      throw DeviceError("\(name) does not see memory of the process at its own addresses, which buffers need")
    }
    overlapsDispatches = major >= 9
    multiprocessors = try attribute(Attribute.multiprocessors)
    var memory = 0
    try check(driver.totalMemory(&memory, device), "cuDeviceTotalMem")
    totalMemory = memory
    var context: CudaDriver.Pointer?
    try check(driver.createContext(&context, 0, device), "cuCtxCreate")
    guard let context else { throw DeviceError("NVIDIA GPU \(ordinal): cuCtxCreate made no context") }
    self.context = context
    self.driver = driver
    // It is current on the thread that made it, which may have another's.
    var previous: CudaDriver.Pointer?
    _ = driver.popContext(&previous)
  }

  /// A context whose kernel does not end stays until the process does: to destroy it would wait.
  deinit {
    guard !isStuck.load(ordering: .relaxed) else { return }
    _ = driver.destroyContext(context)
    kept.withLock { for free in $0 { free() } }
  }

  private let isStuck = Atomic<Bool>(false)

  /// Makes calls in the context.
  func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
    _ = driver.pushContext(context)
    defer {
      var previous: CudaDriver.Pointer?
      _ = driver.popContext(&previous)
    }
    return try body()
  }

  // MARK: Its end

  var lossReason: String? { end.withLock { $0 } }

  /// What a device is lost by, with what that means.
  enum Loss: String {
    /// A call that failed.
    case call = "The device is lost: open it anew"
    /// What a kernel did, after which the driver makes no context in the process any more.
    case fault = "No NVIDIA GPU opens in this process any more"
    /// A kernel that goes on for ever.
    case endlessKernel = "The device is lost until the process ends"
  }

  func lose(_ reason: String, by loss: Loss) {
    end.withLock { $0 = $0 ?? "\(reason). \(loss.rawValue)" }
    let consequence: String
    switch loss {
    case .call: return
    case .fault: consequence = "the driver does nothing more in a process with a kernel that failed (\(reason))"
    case .endlessKernel:
      isStuck.store(true, ordering: .relaxed)
      consequence =
        "a kernel that was given up goes on in this process, and may reach memory that another device is given"
    }
    Self.ended.withLock { $0[driver.identity] = $0[driver.identity] ?? consequence }
  }

  // MARK: Memory

  func map(_ pointer: UnsafeMutableRawPointer, size: Int) -> Bool {
    // Portable, and mapped: the GPU finds it at the same address.
    let status = perform { driver.registerMemory(pointer, size, 3) }
    if status == CudaStatus.alreadyRegistered {
      foreign.withLock { _ = $0.insert(UInt(bitPattern: pointer)) }
      return true
    }
    return status == CudaStatus.success
  }

  func unmap(_ pointer: UnsafeMutableRawPointer, _ free: @escaping () -> Void) {
    if foreign.withLock({ $0.remove(UInt(bitPattern: pointer)) != nil }) { return free() }
    guard !isStuck.load(ordering: .relaxed) else { return }
    // After a fault the driver does nothing more for the context.
    guard lossReason == nil, perform({ driver.unregisterMemory(pointer) }) == CudaStatus.success else {
      return kept.withLock { $0.append(free) }
    }
    free()
  }

  func allocate(length: Int, isZeroed: Bool) -> UnsafeMutableRawPointer? {
    perform {
      var address: UInt64 = 0
      guard driver.allocate(&address, length) == CudaStatus.success else { return nil }
      // Zeros are there before a queue's stream, which waits for no other, can look.
      let isReady =
        !isZeroed
        || driver.fill(address, 0, length) == CudaStatus.success && driver.waitForStream(nil) == CudaStatus.success
      guard isReady, let pointer = UnsafeMutableRawPointer(bitPattern: UInt(address)) else {
        _ = driver.free(address)
        return nil
      }
      return pointer
    }
  }

  func deallocate(_ address: UnsafeMutableRawPointer) {
    // It would wait for a kernel that does not end.
    guard !isStuck.load(ordering: .relaxed) else { return }
    _ = perform { driver.free(UInt64(UInt(bitPattern: address))) }
  }
}
