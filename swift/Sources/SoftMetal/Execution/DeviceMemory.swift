import Glibc
import Synchronization

/// The memory of one device, accounted: that of the process page-aligned and zero-filled, the device's own as asked for.
final class DeviceMemory: Sendable {
  /// Whether buffers lie between guard zones.
  let guardsBuffers: Bool
  /// Whether the device's own memory is filled with zeros; what the process sees always is.
  let zeroesPrivate: Bool
  /// The allocation of the device that a test wants to fail.
  let failure: AllocationFailure?

  /// Of a device whose kernels do not see all memory of the process.
  let mapping: (any MemoryMapping)?

  /// Bytes of the largest allocation: half of the machine's memory.
  let maxLength = Processor.physicalMemory / 2

  private let allocated = Atomic<Int>(0)

  /// Freed ranges of a device that guards its buffers, oldest first: they stay without access, so that a kernel that
  /// follows the address of a buffer that is gone faults, and does not meet another buffer.
  private let freed = Mutex<[(pointer: UInt, size: Int)]>([])
  private static let freedLimit = 4096

  init(
    guardsBuffers: Bool = false, zeroesPrivate: Bool = true, failure: AllocationFailure? = nil,
    mapping: (any MemoryMapping)? = nil
  ) {
    self.mapping = mapping
    self.guardsBuffers = guardsBuffers
    self.zeroesPrivate = zeroesPrivate
    self.failure = failure
  }

  deinit {
    for range in freed.withLock({ $0 }) { munmap(UnsafeMutableRawPointer(bitPattern: range.pointer), range.size) }
  }

  /// Bytes of all allocations alive, in whole pages.
  var allocatedSize: Int { allocated.load(ordering: .relaxed) }

  /// Bytes that an allocation of `length` bytes takes.
  static func roundedToPages(_ length: Int) -> Int {
    let page = Processor.pageSize
    return (length + page - 1) / page * page
  }

  /// Zeros, which the kernel commits page by page at the first touch.
  ///
  /// - Parameter size: bytes, whole pages.
  func allocate(size: Int) -> UnsafeMutableRawPointer? {
    let protection = PROT_READ | PROT_WRITE
    let pointer = mmap(nil, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let pointer, pointer != MAP_FAILED else { return nil }
    guard adopt(pointer, size: size) else {
      munmap(pointer, size)
      return nil
    }
    return pointer
  }

  func deallocate(_ pointer: UnsafeMutableRawPointer, size: Int) {
    release(pointer, size: size) { [weak self] in
      if let self { giveBack(pointer, size: size) } else { munmap(pointer, size) }
    }
  }

  private func giveBack(_ pointer: UnsafeMutableRawPointer, size: Int) {
    // Replaced, so that its pages are given back.
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED
    guard guardsBuffers, mmap(pointer, size, PROT_NONE, flags, -1, 0) != MAP_FAILED else {
      munmap(pointer, size)
      return
    }
    let oldest = freed.withLock { freed -> (pointer: UInt, size: Int)? in
      freed.append((UInt(bitPattern: pointer), size))
      return freed.count > Self.freedLimit ? freed.removeFirst() : nil
    }
    if let oldest { munmap(UnsafeMutableRawPointer(bitPattern: oldest.pointer), oldest.size) }
  }

  /// Whether it has memory of its own, which the process does not see.
  var isApart: Bool { mapping != nil }

  /// Memory that the device alone sees, of exactly `length` bytes; accounted in whole pages, as all is.
  func allocatePrivate(length: Int) -> UnsafeMutableRawPointer? {
    guard let address = mapping?.allocate(length: length, isZeroed: zeroesPrivate) else { return nil }
    allocated.wrappingAdd(Self.roundedToPages(length), ordering: .relaxed)
    return address
  }

  func deallocatePrivate(_ address: UnsafeMutableRawPointer, length: Int) {
    mapping?.deallocate(address)
    allocated.wrappingSubtract(Self.roundedToPages(length), ordering: .relaxed)
  }

  /// Whether this allocation, of anything of the device's, has to fail.
  func fails(_ kind: AllocationFailure.Kind) -> Bool {
    failure?.strikes(kind) ?? false
  }

  /// Takes memory of the process, its own or not, into use; false where the device cannot.
  func adopt(_ pointer: UnsafeMutableRawPointer, size: Int) -> Bool {
    guard mapping?.map(pointer, size: size) ?? true else { return false }
    allocated.wrappingAdd(size, ordering: .relaxed)
    return true
  }

  /// - Parameter free: what becomes of the memory as soon as the device has let go of it.
  func release(_ pointer: UnsafeMutableRawPointer, size: Int, _ free: @escaping () -> Void) {
    allocated.wrappingSubtract(size, ordering: .relaxed)
    if let mapping { mapping.unmap(pointer, free) } else { free() }
  }
}
