import CMetalAttention
import Testing

@Suite struct FlashAttnPrefillTests {
  let device = TestDevice()

  private struct Shape {
    var batch: Int32 = 1
    var heads: Int32 = 2
    var kvHeads: Int32 = 1
    var qL: Int32 = 33
    var kL: Int32 = 20
    let headDim: Int32 = 256
  }

  /// Arguments for packed head-major tensors; the library fills the derived fields in.
  private func arguments(_ shape: Shape, _ q: TestBuffer, _ k: TestBuffer, _ v: TestBuffer, _ out: TestBuffer)
    -> MAFlashAttnPrefillArgs
  {
    var args = MAFlashAttnPrefillArgs()
    (args.q, args.k) = (q.tensor(MA_DTYPE_BF16), k.tensor(MA_DTYPE_BF16))
    (args.v, args.out) = (v.tensor(MA_DTYPE_BF16), out.tensor(MA_DTYPE_BF16))
    args.nKvHeads = UInt32(shape.kvHeads)
    args.params.B = shape.batch
    args.params.H = shape.heads
    args.params.D = shape.headDim
    args.params.qL = shape.qL
    args.params.kL = shape.kL
    args.params.scale = 0.0625
    args.params.softcapping = 1
    let row = Int64(shape.headDim)
    let (queryPlane, keyPlane) = (Int64(shape.qL) * row, Int64(shape.kL) * row)
    args.params.Q_strides = (queryPlane * Int64(shape.heads), queryPlane, row)
    args.params.O_strides = args.params.Q_strides
    args.params.K_strides = (keyPlane * Int64(shape.kvHeads), keyPlane, row)
    args.params.V_strides = args.params.K_strides
    return args
  }

  private func bytes(_ heads: Int32, _ rows: Int32, _ shape: Shape) -> UInt64 {
    UInt64(shape.batch * heads * rows * shape.headDim * 2)
  }

  /// The status of a prefill after a change of valid arguments.
  private func encode(_ shape: Shape = Shape(), _ change: (inout MAFlashAttnPrefillArgs) -> Void) -> Int32 {
    let (q, out) = (
      device.buffer(bytes(shape.heads, shape.qL, shape)), device.buffer(bytes(shape.heads, shape.qL, shape))
    )
    let (k, v) = (
      device.buffer(bytes(shape.kvHeads, shape.kL, shape)), device.buffer(bytes(shape.kvHeads, shape.kL, shape))
    )
    var args = arguments(shape, q, k, v, out)
    change(&args)
    let pass = device.pass()
    defer { _ = ma_pass_release(pass) }
    let status = ma_flash_attn_prefill(pass, &args)
    var info = MAPassInfo()
    #expect(ma_pass_info(pass, &info) == MA_OK)
    #expect(info.dispatches == (status == MA_OK ? 1 : 0))
    return status
  }

  /// With equal keys every weight is the same, so that the output is the mean
  /// of the values a row may see.
  @Test(arguments: [false, true])
  func equalKeysGiveTheMeanOfTheValues(causal: Bool) {
    let shape = Shape(batch: 2, heads: 2, kvHeads: 1, qL: 20, kL: 20)
    let count = Int(bytes(shape.kvHeads, shape.kL, shape) / 2)
    let (q, out) = (
      device.buffer(bytes(shape.heads, shape.qL, shape)), device.buffer(bytes(shape.heads, shape.qL, shape))
    )
    let k = device.buffer([UInt16](repeating: 0x3F80, count: count))
    // Row r of the values is r; bf16 holds these exactly.
    let values = (0..<count).map { index in
      UInt16(truncatingIfNeeded: Float(index / 256 % 20).bitPattern >> 16)
    }
    let v = device.buffer(values)
    var args = arguments(shape, q, k, v, out)
    args.causal = causal ? 1 : 0
    let pass = device.pass()
    expectOK(ma_flash_attn_prefill(pass, &args))
    let description = text { ma_pass_describe(pass, $0, $1, $2) }
    #expect(
      description.hasPrefix("[{\"op\":\"flashAttnPrefill\",\"kernel\":\"flash_attn_prefill_bf16_d256\",\"executor\":"))
    #expect(
      description.contains(
        "\"form\":\"threadgroups\",\"grid\":[2,2,1],\"threadsPerThreadgroup\":[32,2,2]"))
    run(pass)
    for (index, bits) in out.array(UInt16.self).enumerated() {
      let row = index / 256 % 20
      let mean = causal ? Float(row) / 2 : 9.5
      let value = Float(bitPattern: UInt32(bits) << 16)
      #expect(abs(value - mean) <= mean / 128)
    }
  }

  @Test func dimensionsAreChecked() {
    expectOK(encode { _ in })
    expectRefused(encode { $0.params.B = 0 }, MA_ERROR_INVALID_ARGUMENT, "B is 0")
    expectRefused(encode { $0.params.H = -2 }, MA_ERROR_INVALID_ARGUMENT, "H is -2")
    expectRefused(encode { $0.params.qL = 0 }, MA_ERROR_INVALID_ARGUMENT, "qL is 0")
    expectRefused(encode { $0.params.kL = .min }, MA_ERROR_INVALID_ARGUMENT, "kL is -2147483648")
    expectRefused(encode { $0.nKvHeads = 0 }, MA_ERROR_INVALID_ARGUMENT, "nKvHeads is 0")
    expectRefused(encode { $0.nKvHeads = 3 }, MA_ERROR_INVALID_ARGUMENT, "H 2", "nKvHeads 3")
    expectRefused(encode { $0.causal = 2 }, MA_ERROR_INVALID_ARGUMENT, "causal is 2")
  }

  @Test(arguments: [0, -1, .infinity, .nan] as [Float])
  func aScaleIsFiniteAndPositive(scale: Float) {
    expectRefused(encode { $0.params.scale = scale }, MA_ERROR_INVALID_ARGUMENT, "scale is \(scale)")
  }

  @Test func derivedFieldsMustFollow() {
    expectRefused(encode { $0.params.NQ = 1 }, MA_ERROR_INVALID_ARGUMENT, "NQ is 1", "ceil(qL / BQ) is 2")
    expectRefused(encode { $0.params.NK = 1 }, MA_ERROR_INVALID_ARGUMENT, "NK is 1", "is 2")
    expectRefused(encode { $0.params.NQ_aligned = 2 }, MA_ERROR_INVALID_ARGUMENT, "NQ_aligned is 2", "is 1")
    expectRefused(encode { $0.params.NK_aligned = 2 }, MA_ERROR_INVALID_ARGUMENT, "NK_aligned is 2", "is 1")
    expectRefused(encode { $0.params.qL_rem = 2 }, MA_ERROR_INVALID_ARGUMENT, "qL_rem is 2", "is 1")
    expectRefused(encode { $0.params.kL_rem = -4 }, MA_ERROR_INVALID_ARGUMENT, "kL_rem is -4", "is 4")
    expectRefused(encode { $0.params.gqa_factor = 1 }, MA_ERROR_INVALID_ARGUMENT, "gqa_factor is 1", "is 2")
    expectRefused(encode { $0.params.softcapping = 30 }, MA_ERROR_UNSUPPORTED, "softcapping is 30")
  }

  @Test func derivedFieldsMayBeRight() {
    expectOK(
      encode {
        ($0.params.NQ, $0.params.NK, $0.params.NQ_aligned, $0.params.NK_aligned) = (2, 2, 1, 1)
        ($0.params.qL_rem, $0.params.kL_rem, $0.params.gqa_factor) = (1, 4, 2)
      })
  }

  @Test func aResumeStaysInsideTheKeys() {
    let shape = Shape(qL: 8, kL: 20)
    expectOK(encode(shape) { $0.params.qL_off = 12 })
    expectRefused(encode(shape) { $0.params.qL_off = 13 }, MA_ERROR_INVALID_ARGUMENT, "qL_off 13", "qL 8", "kL 20")
    expectRefused(encode(shape) { $0.params.qL_off = -1 }, MA_ERROR_INVALID_ARGUMENT, "qL_off is -1")
    expectRefused(encode(shape) { $0.params.qL_off = .max }, MA_ERROR_INVALID_ARGUMENT, "qL_off 2147483647")
  }

  @Test func stridesStayInsideTheTensors() {
    expectRefused(encode { $0.params.Q_strides.1 += 1 }, MA_ERROR_BUFFER_TOO_SMALL, "q", "33792", "33794")
    expectRefused(encode { $0.params.K_strides.2 = 257 }, MA_ERROR_BUFFER_TOO_SMALL, "k")
    expectRefused(encode { $0.v.length -= 2 }, MA_ERROR_BUFFER_TOO_SMALL, "v", "10238", "10240")
    expectRefused(encode { $0.params.Q_strides.2 = .max }, MA_ERROR_OVERFLOW, "q")
    expectRefused(encode { $0.params.V_strides.0 = -1 }, MA_ERROR_INVALID_ARGUMENT, "V_strides", "-1")
    expectRefused(encode { $0.params.O_strides.1 = 0 }, MA_ERROR_INVALID_ARGUMENT, "O_strides", "share memory")
    // A dimension of one element may have any stride, and inputs may repeat.
    expectOK(encode { $0.params.K_strides.0 = .max })
    expectOK(encode { $0.params.Q_strides.1 = 0 })
    // Sequence-major: [B, L, H, D].
    expectOK(
      encode {
        ($0.params.Q_strides.1, $0.params.Q_strides.2) = (256, 512)
        ($0.params.O_strides.1, $0.params.O_strides.2) = (256, 512)
      })
  }

  @Test func outOverlapsNoInput() {
    expectRefused(encode { $0.out = $0.q }, MA_ERROR_INVALID_ARGUMENT, "out and q overlap")
    expectRefused(
      encode(Shape(heads: 1, qL: 20, kL: 20)) { $0.out = $0.v }, MA_ERROR_INVALID_ARGUMENT, "out and v overlap")
  }

  @Test func unsupportedCombinationsListTheSupported() {
    expectRefused(
      encode { args in
        for path in [\MAFlashAttnPrefillArgs.q, \.k, \.v, \.out] { args[keyPath: path].dtype = UInt32(MA_DTYPE_U8) }
      }, MA_ERROR_UNSUPPORTED, "u8 with D=256", "bf16 or f16 with D=64, 80")
    expectRefused(encode { $0.params.D = 100 }, MA_ERROR_UNSUPPORTED, "D=100", "192, 256, 512")
    expectRefused(encode { $0.k.dtype = UInt32(MA_DTYPE_F16) }, MA_ERROR_UNSUPPORTED, "k is f16, q is bf16")
    expectRefused(
      encode {
        $0.mask = $0.q; $0.mask.dtype = UInt32(MA_DTYPE_F32)
      }, MA_ERROR_UNSUPPORTED, "mask is f32")
    expectRefused(encode { $0.tileClasses = $0.q }, MA_ERROR_INVALID_ARGUMENT, "tileClasses", "without the mask")
    expectRefused(encode { $0.out = MATensor() }, MA_ERROR_INVALID_HANDLE, "out: the handle is 0")
  }
}
