import CMetalAttention
import Testing

@Suite struct PassTests {
  let device = TestDevice()

  private func copyArgs(_ source: TestBuffer, _ cache: TestBuffer, at writePos: UInt32 = 0) -> MAKvCacheCopyArgs {
    var args = MAKvCacheCopyArgs()
    args.src = source.tensor(MA_DTYPE_F32)
    args.cache = cache.tensor(MA_DTYPE_F32)
    args.params = KvCacheCopyParams(
      writePos: writePos, rowSize: 4, nNew: 1, cacheCap: UInt32(cache.length / 16), isSliding: 0)
    return args
  }

  private func info(_ pass: ma_pass) -> MAPassInfo {
    var info = MAPassInfo()
    expectOK(ma_pass_info(pass, &info))
    return info
  }

  @Test func statesFollowTheLifeOfAPass() {
    let (source, cache) = (device.buffer([1, 2, 3, 4] as [Float]), device.buffer(64))
    var args = copyArgs(source, cache, at: 1)
    let pass = device.pass()
    #expect(info(pass).state == MA_STATE_ENCODING)
    expectRefused(ma_pass_wait(pass), MA_ERROR_INVALID_STATE, "not committed")
    expectOK(ma_kv_cache_copy(pass, &args))
    #expect(info(pass).dispatches == 1)
    #expect(info(pass).gpuEndTime == 0)
    expectOK(ma_pass_commit(pass))
    expectRefused(ma_pass_commit(pass), MA_ERROR_INVALID_STATE, "already committed")
    expectRefused(ma_kv_cache_copy(pass, &args), MA_ERROR_INVALID_STATE, "committed")
    expectOK(ma_pass_wait(pass))
    expectOK(ma_pass_wait(pass))
    let done = info(pass)
    #expect(done.state == MA_STATE_COMPLETED)
    #expect(done.gpuStartTime > 0 && done.gpuEndTime >= done.gpuStartTime)
    #expect(cache.array(Float.self) == [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0])
    expectOK(ma_pass_release(pass))
    expectRefused(ma_pass_wait(pass), MA_ERROR_INVALID_HANDLE)
  }

  @Test func anEmptyPassCompletes() {
    for mode in [MA_PASS_CONCURRENT, MA_PASS_SERIAL] {
      let pass = device.pass(mode)
      #expect(text { ma_pass_describe(pass, $0, $1, $2) } == "[]")
      run(pass)
    }
    var pass: ma_pass = 0
    expectRefused(ma_pass_create(device.handle, 8, &pass), MA_ERROR_INVALID_ARGUMENT, "mode is 8")
    expectRefused(ma_pass_create(device.handle, 6, &pass), MA_ERROR_INVALID_ARGUMENT, "mode is 6")
  }

  @Test func whatIsReleasedInFlightStillRuns() {
    let source = device.buffer([Float](repeating: 3, count: 4))
    let cache = device.buffer(1 << 20)
    var args = copyArgs(source, cache)
    let (pass, later) = (device.pass(), device.pass())
    for position in 0..<4096 {
      args.params.writePos = UInt32(position)
      expectOK(ma_kv_cache_copy(pass, &args))
    }
    expectOK(ma_pass_commit(pass))
    expectOK(ma_pass_release(pass))
    expectOK(ma_buffer_release(source.handle))
    run(later)
    #expect(cache.array(Float.self).prefix(4 * 4096).allSatisfy { $0 == 3 })
  }

  @Test func aDeviceClosesWithPassesInFlightAndOpen() {
    let other = TestDevice()
    let (source, cache) = (other.buffer(16), other.buffer(1 << 16))
    var args = copyArgs(source, cache)
    let (committed, open) = (other.pass(), other.pass())
    for _ in 0..<1000 { expectOK(ma_kv_cache_copy(committed, &args)) }
    expectOK(ma_kv_cache_copy(open, &args))
    expectOK(ma_pass_commit(committed))
    expectOK(ma_device_close(other.handle))
    expectRefused(ma_pass_wait(committed), MA_ERROR_INVALID_HANDLE)
  }

  @Test func tenThousandDispatchesFitInAPass() {
    let count = 10_000
    let rows = (0..<count).map { Float($0) }
    let source = device.buffer(rows.flatMap { [$0, $0, $0, $0] })
    let cache = device.buffer(UInt64(count * 16))
    for mode in [MA_PASS_CONCURRENT, MA_PASS_SERIAL] {
      let pass = device.pass(mode)
      for row in 0..<count {
        var args = copyArgs(source, cache, at: UInt32(count - 1 - row))
        args.src.offset = UInt64(row * 16)
        args.src.length = 16
        expectOK(ma_kv_cache_copy(pass, &args))
      }
      #expect(info(pass).dispatches == count)
      #expect(!text { ma_pass_describe(pass, $0, $1, $2) }.contains("\"barrierBefore\":true"))
      run(pass)
      #expect(cache.array(Float.self) == rows.reversed().flatMap { [$0, $0, $0, $0] })
    }
  }

  @Test func aPassTellsWhereItsBarriersAre() {
    let (a, b, c) = (device.buffer([1, 2, 3, 4] as [Float]), device.buffer(32), device.buffer(32))
    let pass = device.pass()
    var first = copyArgs(a, b, at: 1)
    expectOK(ma_kv_cache_copy(pass, &first))
    var second = copyArgs(b, c)
    second.src.offset = 16
    second.src.length = 16
    expectOK(ma_kv_cache_copy(pass, &second))
    let description = text { ma_pass_describe(pass, $0, $1, $2) }
    let common =
      "\"op\":\"kvCacheCopy\",\"kernel\":\"kv_cache_copy_f32\",\"executor\":\"loop\",\"form\":\"threads\","
      + "\"grid\":[1,1,1],\"threadsPerThreadgroup\":[1,1,1],"
    #expect(
      description == "[{\(common)\"reads\":[{\"buffer\":\(a.handle),\"offset\":0,\"length\":16}],"
        + "\"writes\":[{\"buffer\":\(b.handle),\"offset\":16,\"length\":16}],\"barrierBefore\":false},"
        + "{\(common)\"reads\":[{\"buffer\":\(b.handle),\"offset\":16,\"length\":16}],"
        + "\"writes\":[{\"buffer\":\(c.handle),\"offset\":0,\"length\":16}],\"barrierBefore\":true}]")
    run(pass)
    #expect(c.array(Float.self) == [1, 2, 3, 4, 0, 0, 0, 0])
  }

  @Test func manyOpenPassesAreRefusedBeforeTheQueueBlocks() {
    var passes: [ma_pass] = []
    var pass: ma_pass = 0
    while passes.count < 100, ma_pass_create(device.handle, 0, &pass) == MA_OK { passes.append(pass) }
    #expect(passes.count >= 32 && passes.count < 64)
    expectRefused(ma_pass_create(device.handle, 0, &pass), MA_ERROR_INVALID_STATE, "\(passes.count) passes")
    if let last = passes.popLast() { expectOK(ma_pass_release(last)) }
    passes.append(device.pass())
    for pass in passes { run(pass) }
  }
}
