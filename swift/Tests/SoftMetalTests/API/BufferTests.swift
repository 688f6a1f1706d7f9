import Glibc
import Testing

@testable import SoftMetal

@Suite struct BufferTests {
  let device: any MTLDevice

  init() throws {
    device = try SoftDevice(settings: DeviceSettings(threads: 1))
  }

  @Test func startsWithZerosOnAPage() throws {
    let buffer = try #require(device.makeBuffer(length: 5000))
    #expect(buffer.length == 5000)
    #expect(buffer.allocatedSize == 8192)
    #expect(buffer.storageMode == .shared)
    #expect(UInt(bitPattern: buffer.contents()) % UInt(sysconf(Int32(_SC_PAGESIZE))) == 0)
    #expect(UnsafeRawBufferPointer(start: buffer.contents(), count: 5000).allSatisfy { $0 == 0 })
  }

  @Test func copiesBytes() throws {
    let bytes: [UInt8] = (0..<100).map { $0 }
    let buffer = try #require(device.makeBuffer(bytes: bytes, length: bytes.count))
    #expect(Array(UnsafeRawBufferPointer(start: buffer.contents(), count: 100)) == bytes)
  }

  @Test func impossibleLengthsGiveNil() {
    for length in [0, -1, .min, device.maxBufferLength + 1, .max] {
      #expect(device.makeBuffer(length: length) == nil)
      #expect(device.makeBuffer(bytes: [UInt8(1)], length: length) == nil)
    }
    #expect(device.currentAllocatedSize == 0)
  }

  @Test func memoryThatTheSystemRefusesGivesNil() {
    let memory = DeviceMemory()
    #expect(memory.allocate(size: 1 << 50) == nil)
    #expect(memory.allocatedSize == 0)
  }

  @Test func aLargeBufferCostsNothingBeforeItIsTouched() throws {
    func residentPages() -> Int {
      guard let file = fopen("/proc/self/statm", "r") else { return 0 }
      defer { fclose(file) }
      var line = [CChar](repeating: 0, count: 200)
      guard fgets(&line, 200, file) != nil else { return 0 }
      return Int(String(cString: line).split(separator: " ")[1]) ?? 0
    }
    let before = residentPages()
    let buffer = try #require(device.makeBuffer(length: 1 << 30))
    #expect(buffer.length == 1 << 30)
    #expect(residentPages() - before < (1 << 28) / 4096)
  }

  @Test func allocatedSizeFollowsBuffers() throws {
    do {
      let first = device.makeBuffer(length: 1)
      let second = device.makeBuffer(length: 4097, options: .storageModePrivate)
      #expect(second?.storageMode == .private)
      #expect(device.currentAllocatedSize == 3 * 4096)
      withExtendedLifetime((first, second)) {}
    }
    #expect(device.currentAllocatedSize == 0)
  }

  /// As Metal has it: the CPU does not see them.
  @Test func privateBuffersHaveNoContents() throws {
    let buffer = try #require(device.makeBuffer(length: 16, options: .storageModePrivate))
    #expect(UInt(bitPattern: buffer.contents()) == 0)
    #expect(buffer.gpuAddress != 0)
    let bytes: [UInt8] = Array(repeating: 1, count: 16)
    #expect(device.makeBuffer(bytes: bytes, length: 16, options: .storageModePrivate) == nil)
  }

  @Test func memorylessBuffersAreRefused() {
    #expect(device.makeBuffer(length: 16, options: MTLResourceOptions(rawValue: 3 << 4)) == nil)
  }

  @Test func callersMemoryIsUsedInPlaceAndGivenBack() throws {
    var pointer: UnsafeMutableRawPointer?
    try #require(posix_memalign(&pointer, 4096, 8192) == 0)
    let memory = try #require(pointer)
    defer { free(memory) }
    var returned: [Int] = []
    do {
      let buffer = try #require(device.makeBuffer(bytesNoCopy: memory, length: 8192) { returned.append($1) })
      #expect(buffer.contents() == memory)
      #expect(device.currentAllocatedSize == 8192)
    }
    #expect(returned == [8192])
    #expect(device.currentAllocatedSize == 0)
    #expect(device.makeBuffer(bytesNoCopy: memory + 16, length: 4096) == nil)
    #expect(device.makeBuffer(bytesNoCopy: memory, length: 100) == nil)
  }
}
