import Glibc
import Synchronization

/// A buffer in the CPU's memory.
final class SoftBuffer: MTLBuffer {
  typealias Deallocator = (UnsafeMutableRawPointer, Int) -> Void

  private enum Owner {
    case device
    case caller(Deallocator?)
  }

  var label: String?
  let length: Int
  let allocatedSize: Int
  let storageMode: MTLStorageMode
  let memory: DeviceMemory
  let pointer: UnsafeMutableRawPointer
  /// What lies around the buffer on a device that guards its buffers.
  let zones: BufferGuard?
  private let owner: Owner

  /// The number of the last command list that retained this buffer, so that
  /// it does so once.
  let lastRetainer = Atomic<UInt64>(0)

  /// A zero-filled buffer; nil where the memory cannot be had.
  init?(length: Int, storageMode: MTLStorageMode, memory: DeviceMemory) {
    guard length > 0, length <= memory.maxLength else { return nil }
    let margin = memory.guardsBuffers ? BufferGuard.zoneLength : 0
    let size = DeviceMemory.roundedToPages(length) + 2 * margin
    guard let allocation = memory.allocate(size: size) else { return nil }
    pointer = allocation + margin
    zones = memory.guardsBuffers ? BufferGuard(around: pointer, length: length) : nil
    self.length = length
    self.storageMode = storageMode
    self.memory = memory
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
    case .caller(let deallocator):
      memory.release(pointer, size: length)
      deallocator?(pointer, length)
    }
  }

  func contents() -> UnsafeMutableRawPointer { pointer }

  var gpuAddress: UInt64 { UInt64(UInt(bitPattern: pointer)) }
}
