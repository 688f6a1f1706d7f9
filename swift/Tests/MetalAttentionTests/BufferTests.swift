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
    func create(_ length: UInt64) -> Int32 { ma_buffer_create(device.handle, length, 0, &buffer, &contents) }
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

  @Test func aHoldKeepsTheMemoryAfterAReleaseAndAClose() throws {
    let other = TestDevice()
    let buffer = other.buffer(16)
    var hold: UnsafeMutableRawPointer?
    expectOK(ma_buffer_hold(buffer.handle, &hold))
    buffer.contents?.storeBytes(of: 42, as: UInt32.self)
    expectOK(ma_buffer_release(buffer.handle))
    expectOK(ma_device_close(other.handle))
    #expect(buffer.contents?.load(as: UInt32.self) == 42)
    expectOK(ma_hold_release(buffer.contents, hold))
  }

  @Test func aRefusedHoldHoldsNothing() {
    var info = MADeviceInfo()
    let other = TestDevice()
    let buffer = other.buffer(1 << 20)
    expectRefused(ma_buffer_hold(buffer.handle, nil), MA_ERROR_INVALID_ARGUMENT, "hold")
    expectOK(ma_buffer_release(buffer.handle))
    expectOK(ma_device_info(other.handle, &info))
    #expect(info.currentAllocatedSize == 0)
  }

  @Test func aCollectedBufferIsReleasedOnceAndInSilence() {
    let buffer = device.buffer(16)
    var hold: UnsafeMutableRawPointer?
    expectRefused(ma_buffer_release(0), MA_ERROR_INVALID_HANDLE, "the handle is 0")
    for _ in 0..<2 { expectOK(ma_buffer_collected(nil, UnsafeMutableRawPointer(bitPattern: UInt(buffer.handle)))) }
    // What another call has left for the caller to read.
    #expect(ma_last_error(UInt32(MA_FAILURE_MESSAGE), nil, 0) > 0)
    expectRefused(ma_buffer_release(buffer.handle), MA_ERROR_INVALID_HANDLE)
    expectRefused(ma_buffer_hold(buffer.handle, &hold), MA_ERROR_INVALID_HANDLE)
    expectRefused(ma_hold_release(nil, nil), MA_ERROR_INVALID_ARGUMENT, "hold")
  }

  @Test func whatIsNoArchiveOfKernelsIsRefused() {
    let bytes = [UInt8](repeating: 7, count: 2000)
    expectRefused(ma_kernels_provide(nil, 0), MA_ERROR_INVALID_ARGUMENT, "archive")
    #if !canImport(Metal)
      expectRefused(ma_kernels_provide(bytes, 2000), MA_ERROR_INVALID_ARGUMENT, "kernels.tar")
    #endif
  }
}
