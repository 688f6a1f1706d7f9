import CMetalAttention
import Testing

@Suite struct MessageTests {
  private let message = UInt32(MA_FAILURE_MESSAGE)

  @Test func aFailureHasArgumentAndFunction() {
    expectRefused(ma_device_close(0), MA_ERROR_INVALID_HANDLE)
    #expect(lastFailure(MA_FAILURE_FUNCTION) == "ma_device_close")
    #expect(lastFailure(MA_FAILURE_ARGUMENT) == "device")
    #expect(lastFailure(MA_FAILURE_MESSAGE).hasPrefix("device: "))
    #expect(lastFailure(3) == "")
  }

  @Test func aMessageIsCutToTheCapacity() {
    expectRefused(ma_device_close(0), MA_ERROR_INVALID_HANDLE)
    let whole = lastError
    var bytes = [CChar](repeating: 0x7F, count: 12)
    #expect(ma_last_error(message, &bytes, 8) == whole.utf8.count)
    #expect(bytes[7] == 0 && bytes[8] == 0x7F)
    #expect(String(decoding: bytes[0..<7].map { UInt8(bitPattern: $0) }, as: UTF8.self) == whole.prefix(7))
    #expect(ma_last_error(message, nil, 0) == whole.utf8.count)
    #expect(ma_last_error(message, nil, 8) == whole.utf8.count)
  }

  @Test func aCutLeavesWholeCharacters() {
    let device = TestDevice()
    var pipeline: ma_pipeline = 0
    expectRefused(
      ma_pipeline_create(device.handle, "\u{2211}\u{2211}", nil, 0, &pipeline), MA_ERROR_KERNEL_NOT_FOUND)
    let whole = Array(lastError.utf8)
    var bytes = [CChar](repeating: 0x7F, count: whole.count + 1)
    for capacity in 1...whole.count {
      _ = ma_last_error(message, &bytes, UInt32(capacity))
      let length = bytes.firstIndex(of: 0) ?? -1
      let text = bytes[0..<max(length, 0)].map { UInt8(bitPattern: $0) }
      #expect(length <= capacity - 1 && length > capacity - 4)
      #expect(Array(String(decoding: text, as: UTF8.self).utf8) == Array(whole.prefix(length)))
    }
  }

  @Test func nullIsRefusedByName() {
    let device = TestDevice()
    let pass = device.pass()
    var (handle, contents): (UInt32, UnsafeMutableRawPointer?) = (0, nil)
    expectRefused(ma_device_open(nil), MA_ERROR_INVALID_ARGUMENT, "device is NULL")
    expectRefused(ma_device_info(device.handle, nil), MA_ERROR_INVALID_ARGUMENT, "info is NULL")
    expectRefused(ma_buffer_create(device.handle, 16, 0, nil, &contents), MA_ERROR_INVALID_ARGUMENT, "buffer is NULL")
    expectRefused(ma_buffer_create(device.handle, 16, 0, &handle, nil), MA_ERROR_INVALID_ARGUMENT, "contents is NULL")
    expectRefused(
      ma_buffer_create(device.handle, 16, 2, &handle, &contents), MA_ERROR_INVALID_ARGUMENT,
      "storage is 2; it is MA_STORAGE_SHARED (0) or _PRIVATE (1)")
    expectRefused(ma_source_register(device.handle, nil, "a", 1, nil), MA_ERROR_INVALID_ARGUMENT, "name is NULL")
    expectRefused(ma_source_register(device.handle, "a", nil, 1, nil), MA_ERROR_INVALID_ARGUMENT, "source is NULL")
    expectRefused(ma_pipeline_create(device.handle, nil, nil, 0, &handle), MA_ERROR_INVALID_ARGUMENT, "kernel is NULL")
    expectRefused(
      ma_pipeline_create(device.handle, "a", nil, 1, &handle), MA_ERROR_INVALID_ARGUMENT, "constants is NULL")
    expectRefused(ma_pass_create(device.handle, 0, nil), MA_ERROR_INVALID_ARGUMENT, "pass is NULL")
    expectRefused(ma_pass_describe(pass, nil, 0, nil), MA_ERROR_INVALID_ARGUMENT, "needed is NULL")
    expectRefused(ma_encode_kernel(pass, nil), MA_ERROR_INVALID_ARGUMENT, "dispatch is NULL")
    expectRefused(ma_kv_cache_copy(pass, nil), MA_ERROR_INVALID_ARGUMENT, "args is NULL")
    expectRefused(ma_flash_attn_prefill(pass, nil), MA_ERROR_INVALID_ARGUMENT, "args is NULL")
    expectOK(ma_pass_release(pass))
  }
}
