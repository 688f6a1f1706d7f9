import CMetalAttention
import Testing

@Suite struct CopyTests {
  let device = TestDevice()

  // MARK: What is copied

  @Test func aRingWraps() {
    let source = device.buffer((1...6).map(Float.init))
    let cache = device.buffer(4 * 2 * 4)
    var args = MAKvCacheCopyArgs()
    args.src = source.tensor(MA_DTYPE_F32)
    args.cache = cache.tensor(MA_DTYPE_F32)
    args.params = KvCacheCopyParams(writePos: 7, rowSize: 2, nNew: 3, cacheCap: 4, isSliding: 1)
    let pass = device.pass()
    expectOK(ma_kv_cache_copy(pass, &args))
    let description = text { ma_pass_describe(pass, $0, $1, $2) }
    #expect(
      description.contains(
        "\"writes\":[{\"buffer\":\(cache.handle),\"offset\":24,\"length\":8},"
          + "{\"buffer\":\(cache.handle),\"offset\":0,\"length\":16}]"))
    run(pass)
    #expect(cache.array(Float.self) == [3, 4, 5, 6, 0, 0, 1, 2])
  }

  @Test(arguments: [1, 3, 4, 7, 8, 64] as [UInt32])
  func aSequenceOfBothStreamsReachesEveryHead(headDim: UInt32) {
    let (nHeads, capacity, nTokens, offset, start): (UInt32, UInt32, UInt32, UInt32, UInt32) = (3, 5, 4, 2, 8)
    let count = Int((offset + nTokens) * nHeads * headDim)
    let values = (0..<count).map { Float($0) }
    let (k, v) = (device.buffer(values), device.buffer(values.map { -$0 }))
    let cacheLength = UInt64(nHeads * capacity * headDim) * 4
    let (cacheK, cacheV) = (device.buffer(cacheLength), device.buffer(cacheLength))
    var args = MAKvCacheCopySeqArgs()
    (args.srcK, args.srcV) = (k.tensor(MA_DTYPE_F32), v.tensor(MA_DTYPE_F32))
    (args.cacheK, args.cacheV) = (cacheK.tensor(MA_DTYPE_F32), cacheV.tensor(MA_DTYPE_F32))
    args.params = KvCacheCopySeqParams(
      nHeads: nHeads, headDim: headDim, capacity: capacity, seqPosStart: start, nTokens: nTokens, srcTokOffset: offset,
      nSrcTokens: offset + nTokens)
    (args.isSliding, args.batch) = (1, 1)
    let pass = device.pass()
    expectOK(ma_kv_cache_copy_seq(pass, &args))
    run(pass)

    var expected = [Float](repeating: 0, count: Int(nHeads * capacity * headDim))
    for token in 0..<nTokens {
      for head in 0..<nHeads {
        for column in 0..<headDim {
          let from = ((offset + token) * nHeads + head) * headDim + column
          let to = (head * capacity + (start + token) % capacity) * headDim + column
          expected[Int(to)] = values[Int(from)]
        }
      }
    }
    #expect(cacheK.array(Float.self) == expected)
    #expect(cacheV.array(Float.self) == expected.map { -$0 })
  }

  @Test func aBatchRoundsToTheCachesDType() {
    let source = device.buffer([1, 65519, 65520, 1.00048828125, .infinity, 5.9e-8] as [Float])
    let cache = device.buffer(2 * 2 * 3 * 2)
    var args = MAKvCacheCopyBatchArgs()
    args.srcK = source.tensor(MA_DTYPE_F32)
    args.cacheK = cache.tensor(MA_DTYPE_F16)
    args.params = KvCacheCopyBatchParams(nHeads: 2, headDim: 3, capacity: 2, seqPos: 1)
    args.batch = 1
    let pass = device.pass()
    expectOK(ma_kv_cache_copy_batch(pass, &args))
    run(pass)
    #expect(
      cache.array(UInt16.self)
        == [0, 0, 0, 0x3C00, 0x7BFF, 0x7C00, 0, 0, 0, 0x3C00, 0x7C00, 0x0001])
  }

  @Test func headMajorMovesBytes() {
    let values = (0..<24).map { UInt16($0) | 0x7F80 }
    let source = device.buffer(values)
    let cache = device.buffer(2 * 4 * 3 * 2)
    var args = MAKvCacheCopyHeadMajorArgs()
    args.src = source.tensor(MA_DTYPE_BF16)
    args.cache = cache.tensor(MA_DTYPE_BF16)
    args.params = KvCacheCopyHeadMajorParams(
      nHeads: 2, headDim: 3, capacity: 4, seqPosStart: 3, nTokens: 2, srcTokOffset: 1, srcSeqLen: 4)
    (args.isSliding, args.batch) = (1, 1)
    let pass = device.pass()
    expectOK(ma_kv_cache_copy_head_major(pass, &args))
    run(pass)
    let (a, b) = (Array(values[3..<6]), Array(values[6..<9]))
    let (c, d) = (Array(values[15..<18]), Array(values[18..<21]))
    let none = [UInt16](repeating: 0, count: 6)
    #expect(cache.array(UInt16.self) == b + none + a + d + none + c)
  }

  // MARK: What is refused

  /// Valid arguments: 2 tokens of 4 elements to a cache of 8 slots.
  private func rows(_ change: (inout MAKvCacheCopyArgs) -> Void) -> Int32 {
    let (source, cache) = (device.buffer(32), device.buffer(128))
    var args = MAKvCacheCopyArgs()
    args.src = source.tensor(MA_DTYPE_F32)
    args.cache = cache.tensor(MA_DTYPE_F32)
    args.params = KvCacheCopyParams(writePos: 0, rowSize: 4, nNew: 2, cacheCap: 8, isSliding: 0)
    change(&args)
    return encodedAlone { ma_kv_cache_copy($0, &args) }
  }

  /// Valid arguments: 2 tokens of 2 heads of 4 elements to caches of 4 slots.
  private func sequence(_ change: (inout MAKvCacheCopySeqArgs) -> Void) -> Int32 {
    let (k, v, cacheK, cacheV) = (device.buffer(64), device.buffer(64), device.buffer(128), device.buffer(128))
    var args = MAKvCacheCopySeqArgs()
    (args.srcK, args.srcV) = (k.tensor(MA_DTYPE_F32), v.tensor(MA_DTYPE_F32))
    (args.cacheK, args.cacheV) = (cacheK.tensor(MA_DTYPE_F32), cacheV.tensor(MA_DTYPE_F32))
    args.params = KvCacheCopySeqParams(
      nHeads: 2, headDim: 4, capacity: 4, seqPosStart: 0, nTokens: 2, srcTokOffset: 0, nSrcTokens: 2)
    args.batch = 1
    change(&args)
    return encodedAlone { ma_kv_cache_copy_seq($0, &args) }
  }

  /// The status of one operation in a pass of its own, which holds one dispatch
  /// when it succeeds and none when it is refused.
  private func encodedAlone(_ encode: (ma_pass) -> Int32) -> Int32 {
    let pass = device.pass()
    let status = encode(pass)
    let message = lastError
    var info = MAPassInfo()
    expectOK(ma_pass_info(pass, &info))
    #expect(status == MA_OK || info.dispatches == 0)
    run(pass)
    if status != MA_OK { #expect(lastError == message) }
    return status
  }

  @Test func validArgumentsAreAccepted() {
    expectOK(rows { _ in })
    expectOK(sequence { _ in })
  }

  @Test func tensorsThatLeaveTheirBufferAreRefused() {
    expectRefused(rows { $0.src.length = 36 }, MA_ERROR_BUFFER_TOO_SMALL, "src", "36 bytes", "32 bytes")
    expectRefused(rows { $0.src.offset = 4 }, MA_ERROR_BUFFER_TOO_SMALL, "src", "offset 4")
    expectRefused(rows { $0.cache.offset = .max - 3 }, MA_ERROR_BUFFER_TOO_SMALL, "cache")
    expectRefused(rows { $0.src.offset = 2 }, MA_ERROR_INVALID_ARGUMENT, "src", "offset 2", "4 bytes")
    expectRefused(rows { $0.src.dtype = 13 }, MA_ERROR_INVALID_ARGUMENT, "src", "dtype is 13")
  }

  @Test func sizesAreCheckedAgainstTheTensors() {
    expectRefused(rows { $0.src.length = 28 }, MA_ERROR_BUFFER_TOO_SMALL, "src", "28 bytes", "32", "nNew 2")
    expectRefused(rows { $0.cache.length = 124 }, MA_ERROR_BUFFER_TOO_SMALL, "cache", "124 bytes", "128", "cacheCap 8")
    expectRefused(
      sequence { $0.srcV.length = 60 }, MA_ERROR_BUFFER_TOO_SMALL, "srcV", "60 bytes", "64", "nSrcTokens 2")
    expectRefused(
      sequence { $0.params.srcTokOffset = 1 }, MA_ERROR_BUFFER_TOO_SMALL, "srcTokOffset 1", "nTokens 2", "nSrcTokens 2")
    expectRefused(sequence { $0.params.nSrcTokens = 3 }, MA_ERROR_BUFFER_TOO_SMALL, "srcK", "64", "96", "nSrcTokens 3")
    expectRefused(sequence { $0.batch = 2 }, MA_ERROR_BUFFER_TOO_SMALL, "srcK", "64", "128", "batch 2 x nHeads 2")
    expectRefused(sequence { $0.cacheV.length = 124 }, MA_ERROR_BUFFER_TOO_SMALL, "cacheV", "124", "128")
  }

  @Test func cachesEnd() {
    expectRefused(rows { $0.params.writePos = 7 }, MA_ERROR_OVERFLOW, "writePos 7", "nNew 2", "cacheCap 8")
    expectRefused(rows { $0.params.cacheCap = 0 }, MA_ERROR_INVALID_ARGUMENT, "cache: cacheCap is 0")
    expectRefused(
      rows {
        $0.params.nNew = 9
        $0.params.isSliding = 1
      }, MA_ERROR_OVERFLOW, "nNew 9", "cacheCap 8")
    expectRefused(rows { $0.params.isSliding = 2 }, MA_ERROR_INVALID_ARGUMENT, "isSliding is 2")
    expectRefused(
      rows {
        $0.params.writePos = .max
        $0.params.isSliding = 1
      }, MA_ERROR_OVERFLOW, "4294967295")
    expectRefused(sequence { $0.params.nTokens = 5 }, MA_ERROR_OVERFLOW, "nTokens 5", "capacity 4")
    expectRefused(sequence { $0.params.capacity = 0 }, MA_ERROR_INVALID_ARGUMENT, "cacheK: capacity is 0")
    expectRefused(
      sequence { $0.params.seqPosStart = 3 }, MA_ERROR_OVERFLOW, "seqPosStart 3", "nTokens 2", "capacity 4", "isSliding"
    )
    expectOK(
      sequence {
        $0.params.seqPosStart = 3
        $0.isSliding = 1
      })
    expectRefused(sequence { $0.isSliding = 2 }, MA_ERROR_INVALID_ARGUMENT, "isSliding is 2")
    expectRefused(sequence { $0.batch = 0 }, MA_ERROR_INVALID_ARGUMENT, "batch is 0")
  }

  @Test func productsThatOverflowAreRefused() {
    let huge = UInt32.max
    expectRefused(
      rows { $0.params = KvCacheCopyParams(writePos: 0, rowSize: huge, nNew: huge - 1, cacheCap: huge, isSliding: 0) },
      MA_ERROR_OVERFLOW, "src")
    expectRefused(
      sequence {
        $0.params = KvCacheCopySeqParams(
          nHeads: huge, headDim: huge, capacity: huge, seqPosStart: 0, nTokens: 1, srcTokOffset: 0, nSrcTokens: 1)
      }, MA_ERROR_OVERFLOW, "srcK")
  }

  @Test func nothingToCopyIsSuccessOnceHandlesAreGood() {
    let pass = device.pass()
    let (source, cache) = (device.buffer(32), device.buffer(128))
    var args = MAKvCacheCopyArgs()
    args.src = source.tensor(MA_DTYPE_F32)
    args.cache = cache.tensor(MA_DTYPE_F32)
    expectOK(ma_kv_cache_copy(pass, &args))
    #expect(text { ma_pass_describe(pass, $0, $1, $2) } == "[]")
    args.cache.buffer = 0
    expectRefused(ma_kv_cache_copy(pass, &args), MA_ERROR_INVALID_HANDLE, "cache")
    run(pass)
    args.cache.buffer = cache.handle
    expectRefused(ma_kv_cache_copy(pass, &args), MA_ERROR_INVALID_HANDLE, "pass")
  }

  @Test func unsupportedDTypesListTheSupported() {
    expectRefused(
      rows { $0.cache.dtype = UInt32(MA_DTYPE_F16) }, MA_ERROR_UNSUPPORTED, "f32 to f16",
      "f32 to f32, f16 to f16, bf16 to bf16")
    expectRefused(
      sequence { $0.cacheV.dtype = UInt32(MA_DTYPE_F16) }, MA_ERROR_UNSUPPORTED, "cacheV is f16, cacheK is f32")
    expectRefused(
      sequence {
        $0.srcK.dtype = UInt32(MA_DTYPE_U32)
        $0.srcV.dtype = UInt32(MA_DTYPE_U32)
      }, MA_ERROR_UNSUPPORTED, "u32 to f32", "f32 to bf16")
  }

  @Test func halfOfASecondStreamIsRefused() {
    expectRefused(sequence { $0.srcV = MATensor() }, MA_ERROR_INVALID_ARGUMENT, "srcV is absent")
    expectRefused(sequence { $0.cacheV = MATensor() }, MA_ERROR_INVALID_ARGUMENT, "cacheV is absent")
    expectOK(
      sequence {
        $0.srcV = MATensor()
        $0.cacheV = MATensor()
      })
    expectRefused(sequence { $0.srcV.buffer = 0 }, MA_ERROR_INVALID_HANDLE, "srcV: the handle is 0")
  }

  @Test func aCacheThatOverlapsIsRefused() {
    expectRefused(
      sequence { $0.cacheV = $0.cacheK }, MA_ERROR_INVALID_ARGUMENT, "cacheK and cacheV overlap")
    let buffer = device.buffer(160)
    expectOK(
      rows {
        $0.src = buffer.tensor(MA_DTYPE_F32, length: 32)
        $0.cache = buffer.tensor(MA_DTYPE_F32, offset: 32)
      })
    expectRefused(
      rows {
        $0.src = buffer.tensor(MA_DTYPE_F32, offset: 4, length: 32)
        $0.cache = buffer.tensor(MA_DTYPE_F32, offset: 32)
      }, MA_ERROR_INVALID_ARGUMENT, "cache and src overlap", "32 to 160", "4 to 36")
  }

  @Test func argumentsMayLieAtAnyAddress() {
    let (source, cache) = (device.buffer([5] as [Float]), device.buffer(4))
    var args = MAKvCacheCopyArgs()
    args.src = source.tensor(MA_DTYPE_F32)
    args.cache = cache.tensor(MA_DTYPE_F32)
    args.params = KvCacheCopyParams(writePos: 0, rowSize: 1, nNew: 1, cacheCap: 1, isSliding: 0)
    var bytes = [UInt8](repeating: 0, count: 128)
    let pass = device.pass()
    bytes.withUnsafeMutableBytes { bytes in
      let misaligned = UnsafeMutableRawBufferPointer(rebasing: bytes[3..<75])
      withUnsafeBytes(of: args) { misaligned.copyMemory(from: $0) }
      let address = Int(bitPattern: misaligned.baseAddress)
      expectOK(ma_kv_cache_copy(pass, UnsafePointer(bitPattern: address)))
    }
    run(pass)
    #expect(cache.array(Float.self) == [5])
  }
}
