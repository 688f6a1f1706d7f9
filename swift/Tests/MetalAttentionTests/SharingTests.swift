import CMetalAttention
import Testing

/// One cache, and several devices on threads of their own that use it at the
/// same time; also run under ThreadSanitizer.
@Suite struct SharingTests {
  private static let headDim = 64
  private static let filled = 32
  private static let capacity = 64

  /// A buffer's description, as one thread sends it to another.
  private struct Shared {
    let handle: ma_buffer
    let length: UInt64
    var process: UInt64 = 0
    var number: UInt64 = 0

    init(_ buffer: TestBuffer) {
      (handle, length) = (buffer.handle, buffer.length)
      expectOK(ma_buffer_share(buffer.handle, &process, &number))
    }

    func adopted(by device: TestDevice) -> TestBuffer {
      var buffer: ma_buffer = 0
      var contents: UnsafeMutableRawPointer?
      expectOK(ma_buffer_adopt(device.handle, handle, process, number, &buffer, &contents))
      return TestBuffer(device: device, handle: buffer, contents: contents, length: length)
    }
  }

  /// bf16 that is exact for small integers and halves.
  private static func bits(_ value: Float) -> UInt16 { UInt16(truncatingIfNeeded: value.bitPattern >> 16) }

  @Test func fourAttendWhileAnotherAppends() async {
    let owner = TestDevice()
    // Equal keys weigh all rows alike: the result is the mean of rows 0 to 31, 15.5. What is appended is far from it.
    let count = Self.capacity * Self.headDim
    let k = owner.buffer([UInt16](repeating: Self.bits(1), count: count))
    let v = owner.buffer(
      (0..<count).map { index in
        let row = index / Self.headDim
        return row < Self.filled ? Self.bits(Float(row)) : 0
      })
    let (sharedK, sharedV) = (Shared(k), Shared(v))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { Self.attend(sharedK, sharedV) } }
      group.addTask { Self.append(to: sharedV) }
    }
    let rows = v.array(UInt16.self)
    for row in 0..<Self.capacity {
      let expected = Self.bits(Float(row < Self.filled ? row : 1000))
      #expect(rows[(row * Self.headDim)..<((row + 1) * Self.headDim)].allSatisfy { $0 == expected })
    }
    // Both are the owner's again, and so is their memory.
    for buffer in [k, v] { expectOK(ma_buffer_release(buffer.handle)) }
    var info = MADeviceInfo()
    expectOK(ma_device_info(owner.handle, &info))
    #expect(info.currentAllocatedSize == 0)
  }

  private static func attend(_ sharedK: Shared, _ sharedV: Shared) {
    let device = TestDevice()
    let (k, v) = (sharedK.adopted(by: device), sharedV.adopted(by: device))
    let rowBytes = UInt64(headDim * 2)
    let q = device.buffer([UInt16](repeating: bits(1), count: headDim))
    let out = device.buffer(rowBytes)
    var args = MAFlashAttnPrefillArgs()
    (args.q, args.out) = (q.tensor(MA_DTYPE_BF16), out.tensor(MA_DTYPE_BF16))
    let length = UInt64(filled) * rowBytes
    (args.k, args.v) = (k.tensor(MA_DTYPE_BF16, length: length), v.tensor(MA_DTYPE_BF16, length: length))
    args.nKvHeads = 1
    (args.params.B, args.params.H, args.params.D) = (1, 1, Int32(headDim))
    (args.params.qL, args.params.kL) = (1, Int32(filled))
    (args.params.scale, args.params.softcapping) = (0.125, 1)
    let row = Int64(headDim)
    args.params.Q_strides = (row, row, row)
    args.params.O_strides = (row, row, row)
    args.params.K_strides = (row * Int64(filled), row * Int64(filled), row)
    args.params.V_strides = args.params.K_strides
    for _ in 0..<50 {
      let pass = device.pass()
      expectOK(ma_flash_attn_prefill(pass, &args))
      run(pass)
      #expect(out.array(UInt16.self).allSatisfy { $0 == bits(15.5) })
    }
  }

  private static func append(to shared: Shared) {
    let device = TestDevice()
    let cache = shared.adopted(by: device)
    let source = device.buffer([UInt16](repeating: bits(1000), count: headDim))
    for row in filled..<capacity {
      var args = MAKvCacheCopyArgs()
      (args.src, args.cache) = (source.tensor(MA_DTYPE_BF16), cache.tensor(MA_DTYPE_BF16))
      args.params = KvCacheCopyParams(
        writePos: UInt32(row), rowSize: UInt32(headDim), nNew: 1, cacheCap: UInt32(capacity), isSliding: 0)
      let pass = device.pass()
      expectOK(ma_kv_cache_copy(pass, &args))
      run(pass)
    }
  }
}
