import CMetalAttention
import Testing

@Suite struct MaskTests {
  let device = TestDevice()

  private func build(
    _ mask: MATensor, qL: Int32 = 6, kL: Int32 = 10, offset: Int32 = 0, window: Int32 = 0
  ) -> Int32 {
    var args = MABuildMaskArgs(
      mask: mask, params: BuildMaskParams(qL: qL, kL: kL, qL_off: offset, window: window))
    let pass = device.pass()
    let status = ma_build_mask(pass, &args)
    expectDispatches(pass, status)
    run(pass)
    return status
  }

  private func expectDispatches(_ pass: ma_pass, _ status: Int32) {
    var info = MAPassInfo()
    #expect(ma_pass_info(pass, &info) == MA_OK)
    #expect(info.dispatches == (status == MA_OK ? 1 : 0))
  }

  @Test(arguments: [0, 1, 3] as [Int32])
  func buildersFollowTheirDefinition(window: Int32) {
    let mask = device.buffer(60)
    expectOK(build(mask.tensor(MA_DTYPE_BOOL), offset: 2, window: window))
    let expected = (0..<60).map { index -> UInt8 in
      let (position, key) = (Int32(index) / 10 + 2, Int32(index) % 10)
      return key <= position && (window == 0 || key > position - window) ? 1 : 0
    }
    #expect(mask.array(UInt8.self) == expected)
  }

  @Test func additiveMasksHoldZeroAndMinusInfinity() {
    for (dtype, blocked) in [(MA_DTYPE_BF16, UInt16(0xFF80)), (MA_DTYPE_F16, UInt16(0xFC00))] {
      let mask = device.buffer([UInt16](repeating: 7, count: 4))
      expectOK(build(mask.tensor(dtype), qL: 2, kL: 2))
      #expect(mask.array(UInt16.self) == [0, blocked, 0, 0])
    }
  }

  @Test func buildersCheckWhatTheyAreGiven() {
    let mask = device.buffer(60)
    let tensor = mask.tensor(MA_DTYPE_BOOL)
    expectRefused(build(tensor, qL: 0), MA_ERROR_INVALID_ARGUMENT, "qL is 0")
    expectRefused(build(tensor, kL: -1), MA_ERROR_INVALID_ARGUMENT, "kL is -1")
    expectRefused(build(tensor, offset: -1), MA_ERROR_INVALID_ARGUMENT, "qL_off is -1")
    expectRefused(build(tensor, window: -1), MA_ERROR_INVALID_ARGUMENT, "window is -1")
    expectRefused(build(tensor, offset: .max), MA_ERROR_OVERFLOW, "qL_off 2147483647", "qL 6")
    expectRefused(build(tensor, kL: 11), MA_ERROR_BUFFER_TOO_SMALL, "mask", "60", "66", "qL 6 x kL 11")
    expectRefused(build(tensor, qL: .max, kL: .max), MA_ERROR_BUFFER_TOO_SMALL, "mask")
    expectRefused(build(mask.tensor(MA_DTYPE_F32)), MA_ERROR_UNSUPPORTED, "mask is f32", "bf16, f16 or bool")
    expectRefused(build(MATensor()), MA_ERROR_INVALID_HANDLE, "mask")
    #expect(mask.array(UInt8.self).allSatisfy { $0 == 0 })
  }

  /// The status of a classification of a mask [1, 2, 33, 17] after a change.
  private func classify(
    _ mask: TestBuffer, _ classes: TestBuffer, _ change: (inout MAClassifyMaskTilesArgs) -> Void = { _ in }
  ) -> Int32 {
    var args = MAClassifyMaskTilesArgs()
    args.mask = mask.tensor(MA_DTYPE_BOOL)
    args.tileClasses = classes.tensor(MA_DTYPE_U8)
    args.params = ClassifyMaskParams(B: 1, H: 2, qL: 33, kL: 17, NQ: 0, NK: 0, M_strides: (0, 561, 17))
    args.headDim = 256
    change(&args)
    let pass = device.pass()
    let status = ma_classify_mask_tiles(pass, &args)
    expectDispatches(pass, status)
    run(pass)
    return status
  }

  @Test func tilesAreBlockedMixedOrUnmasked() {
    // Head 0 attends keys 0 to 15, head 1 all but one.
    var elements = (0..<561).map { UInt8($0 % 17 < 16 ? 1 : 0) } + [UInt8](repeating: 1, count: 561)
    elements[561 + 32 * 17 + 16] = 0
    let (mask, classes) = (device.buffer(elements), device.buffer(8))
    expectOK(classify(mask, classes))
    #expect(classes.array(UInt8.self) == [2, 0, 2, 0, 2, 2, 2, 0])
  }

  @Test func theClassifierChecksWhatItIsGiven() {
    let (mask, classes) = (device.buffer([UInt8](repeating: 1, count: 1122)), device.buffer(8))
    func refused(
      _ code: Int, _ parts: String..., location: SourceLocation = #_sourceLocation,
      change: (inout MAClassifyMaskTilesArgs) -> Void
    ) {
      let status = classify(mask, classes, change)
      #expect(status == code, sourceLocation: location)
      for part in parts { #expect(lastError.contains(part), "\(lastError)", sourceLocation: location) }
    }
    refused(MA_ERROR_INVALID_ARGUMENT, "B is 0") { $0.params.B = 0 }
    refused(MA_ERROR_INVALID_ARGUMENT, "H is -1") { $0.params.H = -1 }
    refused(MA_ERROR_INVALID_ARGUMENT, "NQ is 1", "is 2") { $0.params.NQ = 1 }
    refused(MA_ERROR_INVALID_ARGUMENT, "NK is 3", "is 2") { $0.params.NK = 3 }
    refused(MA_ERROR_INVALID_ARGUMENT, "NQ is 2", "is 3") {
      $0.params.NQ = 2
      $0.headDim = 512
    }
    refused(MA_ERROR_UNSUPPORTED, "headDim is 65", "64, 80") { $0.headDim = 65 }
    refused(MA_ERROR_UNSUPPORTED, "tileClasses is bool", "u8") { $0.tileClasses.dtype = UInt32(MA_DTYPE_BOOL) }
    refused(MA_ERROR_UNSUPPORTED, "mask is i8") { $0.mask.dtype = UInt32(MA_DTYPE_I8) }
    refused(MA_ERROR_BUFFER_TOO_SMALL, "mask", "1122", "1123") { $0.params.M_strides.1 = 562 }
    refused(MA_ERROR_BUFFER_TOO_SMALL, "tileClasses", "7", "8", "1 x 2 planes") { $0.tileClasses.length = 7 }
    refused(MA_ERROR_INVALID_ARGUMENT, "M_strides", "-17") { $0.params.M_strides.2 = -17 }
    refused(MA_ERROR_OVERFLOW, "mask") { $0.params.M_strides.2 = .max }
    refused(MA_ERROR_INVALID_ARGUMENT, "tileClasses and mask overlap") {
      $0.tileClasses = $0.mask
      $0.tileClasses.dtype = UInt32(MA_DTYPE_U8)
    }
    #expect(classes.array(UInt8.self).allSatisfy { $0 == 0 })
  }
}
