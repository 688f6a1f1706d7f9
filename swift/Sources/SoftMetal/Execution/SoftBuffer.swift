import Glibc
import Synchronization

/// A buffer in the CPU's memory or, private, in that of a GPU.
final class SoftBuffer: MTLBuffer {
  typealias Deallocator = (UnsafeMutableRawPointer, Int) -> Void

  private enum Owner {
    case device
    /// The device's own, which the process does not see.
    case apart
    case caller(Deallocator?)
  }

  var label: String?
  let length: Int
  let allocatedSize: Int
  let storageMode: MTLStorageMode
  let memory: DeviceMemory
  /// Where kernels find it; of a GPU's own memory this leads nowhere in the process.
  let pointer: UnsafeMutableRawPointer
  /// What lies around the buffer on a device that guards its buffers.
  let zones: BufferGuard?
  private let owner: Owner

  /// The number of the last command list that retained this buffer, so that
  /// it does so once.
  let lastRetainer = Atomic<UInt64>(0)

  /// A zero-filled buffer, but for a GPU's own memory where settings leave that unwritten; nil where it cannot be had.
  init?(length: Int, storageMode: MTLStorageMode, memory: DeviceMemory) {
    guard length > 0, length <= memory.maxLength else { return nil }
    self.length = length
    self.storageMode = storageMode
    self.memory = memory
    if storageMode == .private, memory.isApart {
      allocatedSize = DeviceMemory.roundedToPages(length)
      guard let address = memory.allocatePrivate(length: length) else { return nil }
      pointer = address
      zones = nil
      owner = .apart
      return
    }
    let margin = memory.guardsBuffers ? BufferGuard.zoneLength : 0
    let size = DeviceMemory.roundedToPages(length) + 2 * margin
    guard let allocation = memory.allocate(size: size) else { return nil }
    pointer = allocation + margin
    zones = memory.guardsBuffers ? BufferGuard(around: pointer, length: length) : nil
    allocatedSize = size
    owner = .device
  }

  /// A buffer over the caller's pages.
  init?(
    noCopy pointer: UnsafeMutableRawPointer, length: Int, storageMode: MTLStorageMode, memory: DeviceMemory,
    deallocator: Deallocator?
  ) {
    let page = Processor.pageSize
    guard length > 0, length <= memory.maxLength else { return nil }
    guard length % page == 0, UInt(bitPattern: pointer) % UInt(page) == 0 else { return nil }
    guard memory.adopt(pointer, size: length) else { return nil }
    self.pointer = pointer
    self.length = length
    self.storageMode = storageMode
    self.memory = memory
    allocatedSize = length
    zones = nil
    owner = .caller(deallocator)
  }

  deinit {
    switch owner {
    case .device:
      guard let zones else { return memory.deallocate(pointer, size: allocatedSize) }
      if let violation = zones.takeViolation() {
        // No command buffer is left to report it.
        fputs("SoftMetal: \(violation)\n", stderr)
        abort()
      }
      memory.deallocate(pointer - BufferGuard.zoneLength, size: allocatedSize)
    case .apart:
      memory.deallocatePrivate(pointer, length: length)
    case .caller(let deallocator):
      let (pointer, length) = (pointer, length)
      memory.release(pointer, size: length) { deallocator?(pointer, length) }
    }
  }

  /// NULL of a private buffer, as Metal has it, whose type does not say so.
  func contents() -> UnsafeMutableRawPointer {
    storageMode == .private ? unsafeBitCast(UnsafeMutableRawPointer?.none, to: UnsafeMutableRawPointer.self) : pointer
  }

  var gpuAddress: UInt64 { UInt64(UInt(bitPattern: pointer)) }
}
