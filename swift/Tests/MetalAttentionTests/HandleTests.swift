import CMetalAttention
import Testing

@testable import MetalAttention

@Suite struct HandleTests {
  let device = TestDevice()

  @Test(arguments: [0, 1, 0xFFFF_FFFF, 0x4000_0000, 0x8004_0000] as [UInt32])
  func aHandleThatNamesNothingIsRefusedEverywhere(handle: UInt32) {
    // A pass, a buffer and a pipeline must be open for the test to mean much.
    let pass = device.pass()
    defer { _ = ma_pass_release(pass) }
    var (length, contents, count): (UInt64, UnsafeMutableRawPointer?, UInt64) = (7, nil, 7)
    var (deviceInfo, passInfo, pipelineInfo) = (MADeviceInfo(), MAPassInfo(), MAPipelineInfo())
    var out: UInt32 = 7
    var args = MAKvCacheCopyArgs()
    let statuses = [
      ma_device_info(handle, &deviceInfo), ma_buffer_create(handle, 16, 0, &out, &contents),
      ma_buffer_info(handle, &length, &contents), ma_buffer_release(handle),
      ma_source_register(handle, "a", "b", 1, nil), ma_kernel_names(handle, nil, 0, &count),
      ma_pipeline_create(handle, "a", nil, 0, &out), ma_pipeline_info(handle, &pipelineInfo),
      ma_pipeline_executor(handle, nil, 0, &count), ma_pipeline_release(handle), ma_pass_create(handle, 0, &out),
      ma_pass_commit(handle), ma_pass_wait(handle),
      ma_pass_info(handle, &passInfo), ma_pass_describe(handle, nil, 0, &count), ma_pass_release(handle),
      ma_kv_cache_copy(handle, &args), ma_device_close(handle),
    ]
    #expect(statuses.allSatisfy { $0 == MA_ERROR_INVALID_HANDLE })
    #expect(lastError.hasPrefix("device: "))
    #expect(out == 7 && length == 7 && count == 7 && contents == nil)
  }

  @Test func aReleasedHandleStaysInvalid() {
    let buffer = device.buffer(16)
    expectOK(ma_buffer_release(buffer.handle))
    expectRefused(ma_buffer_release(buffer.handle), MA_ERROR_INVALID_HANDLE, "buffer: \(buffer.handle)")
    var seen: Set<ma_buffer> = [buffer.handle]
    for _ in 0..<3000 {
      let next = device.buffer(16).handle
      #expect(seen.insert(next).inserted)
      expectOK(ma_buffer_release(next))
    }
    expectRefused(ma_buffer_release(buffer.handle), MA_ERROR_INVALID_HANDLE)
  }

  @Test func aHandleOfAnotherKindIsRefused() {
    let buffer = device.buffer(16)
    expectRefused(ma_pass_commit(buffer.handle), MA_ERROR_INVALID_HANDLE)
    expectRefused(ma_buffer_release(device.handle), MA_ERROR_INVALID_HANDLE)
    expectOK(ma_buffer_release(buffer.handle))
  }

  @Test func aClosedDeviceTakesWhatItOwnsAlong() {
    let other = TestDevice()
    let buffer = other.buffer(16)
    let mine = device.buffer(16)
    let pass = other.pass()
    expectOK(ma_device_close(other.handle))
    expectRefused(ma_device_close(other.handle), MA_ERROR_INVALID_HANDLE)
    expectRefused(ma_buffer_release(buffer.handle), MA_ERROR_INVALID_HANDLE)
    expectRefused(ma_pass_commit(pass), MA_ERROR_INVALID_HANDLE)
    expectOK(ma_buffer_release(mine.handle))
  }

  @Test func aTensorOfAnotherDeviceIsRefusedByName() {
    let other = TestDevice()
    let (mine, theirs) = (device.buffer(64), other.buffer(64))
    let pass = device.pass()
    var args = MAKvCacheCopyArgs()
    args.src = mine.tensor(MA_DTYPE_F32)
    args.cache = theirs.tensor(MA_DTYPE_F32)
    args.params = KvCacheCopyParams(writePos: 0, rowSize: 4, nNew: 1, cacheCap: 4, isSliding: 0)
    expectRefused(ma_kv_cache_copy(pass, &args), MA_ERROR_INVALID_HANDLE, "cache", "another device")
    args.src.buffer = 0
    expectRefused(ma_kv_cache_copy(pass, &args), MA_ERROR_INVALID_HANDLE, "src: the handle is 0")
    expectOK(ma_pass_release(pass))
  }

  @Test func slotsAreReusedOnlyOnceManyAreFree() throws {
    final class Item {}
    let table = HandleTable<Item>(.buffer)
    let first = try table.insert(Item())
    #expect(table.remove(first) != nil)
    for _ in 0..<HandleTable<Item>.spareSlots {
      let handle = try table.insert(Item())
      #expect(handle & 0x3FFFF != first & 0x3FFFF)
      #expect(table.remove(handle) != nil)
    }
    let again = try table.insert(Item())
    #expect(again & 0x3FFFF == first & 0x3FFFF)
    #expect(again != first)
    #expect(table.find(first) == nil)
    #expect(table.count == 1)
  }
}
