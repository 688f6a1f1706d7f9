import CMetalAttention
import Testing

@Suite struct BufferTests {
  let device = TestDevice()

  @Test func aBufferIsZeroAndShared() {
    let buffer = device.buffer(1000)
    #expect(buffer.array(UInt8.self).allSatisfy { $0 == 0 })
    var length: UInt64 = 0
    var contents: UnsafeMutableRawPointer?
    expectOK(ma_buffer_info(buffer.handle, &length, &contents))
    #expect(length == 1000)
    #expect(contents == buffer.contents && contents != nil)
  }

  @Test func lengthsOutsideTheRangeAreRefused() {
    var info = MADeviceInfo()
    expectOK(ma_device_info(device.handle, &info))
    var (buffer, contents): (ma_buffer, UnsafeMutableRawPointer?) = (5, nil)
    func create(_ length: UInt64) -> Int32 { ma_buffer_create(device.handle, length, &buffer, &contents) }
    expectRefused(create(0), MA_ERROR_INVALID_ARGUMENT, "length is 0")
    expectRefused(
      create(info.maxBufferLength + 1), MA_ERROR_INVALID_ARGUMENT, "\(info.maxBufferLength + 1)",
      "\(info.maxBufferLength)")
    expectRefused(create(.max), MA_ERROR_INVALID_ARGUMENT, "\(UInt64.max)")
    #expect(buffer == 5 && contents == nil)
  }

  @Test func theDeviceTellsWhatItIs() {
    var info = MADeviceInfo()
    expectOK(ma_device_info(device.handle, &info))
    let backend = withUnsafeBytes(of: info.backend) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let name = withUnsafeBytes(of: info.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    #expect(backend == "SoftMetal" || backend == "Metal")
    #expect(!name.isEmpty)
    #expect(info.maxThreadgroupMemoryLength >= 32768)
    #expect(info.maxThreadsPerThreadgroup.0 >= 1024)
    let before = info.currentAllocatedSize
    let buffer = device.buffer(1 << 20)
    expectOK(ma_device_info(device.handle, &info))
    #expect(info.currentAllocatedSize >= before + (1 << 20))
    expectOK(ma_buffer_release(buffer.handle))
  }
}
