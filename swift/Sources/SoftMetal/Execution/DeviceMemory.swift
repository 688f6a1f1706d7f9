import Glibc
import Synchronization

/// The memory of one device: page-aligned, zero-filled, accounted.
final class DeviceMemory: Sendable {
  /// Whether buffers lie between guard zones.
  let guardsBuffers: Bool
  /// The allocation of the device that a test wants to fail.
  let failure: AllocationFailure?

  /// Bytes of the largest allocation: half of the machine's memory.
  let maxLength = Processor.physicalMemory / 2

  private let allocated = Atomic<Int>(0)

  /// Freed ranges of a device that guards its buffers, oldest first: they stay without access, so that a kernel that
  /// follows the address of a buffer that is gone faults, and does not meet another buffer.
  private let freed = Mutex<[(pointer: UInt, size: Int)]>([])
  private static let freedLimit = 4096

  init(guardsBuffers: Bool = false, failure: AllocationFailure? = nil) {
    self.guardsBuffers = guardsBuffers
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
    account(size)
    return pointer
  }

  func deallocate(_ pointer: UnsafeMutableRawPointer, size: Int) {
    account(-size)
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

  /// Whether this allocation, of anything of the device's, has to fail.
  func fails(_ kind: AllocationFailure.Kind) -> Bool {
    failure?.strikes(kind) ?? false
  }

  /// Counts memory that the device uses but does not own; negative when it no
  /// longer does.
  func account(_ size: Int) {
    allocated.wrappingAdd(size, ordering: .relaxed)
  }
}
