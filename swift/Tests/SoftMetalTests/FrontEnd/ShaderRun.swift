import CSoftMetal
import Testing

@testable import SoftMetal

extension LoadedShader {
  /// Runs a kernel in `count` threads, with one buffer of as many numbers, or of `numbers`.
  func run(_ name: String, count: Int, numbers: Int? = nil) throws -> [Int32] {
    let kernel = try #require(self.kernel(named: name))
    let pool = try #require(sm_pool_create(1))
    defer { sm_pool_destroy(pool) }
    var numbers = [Int32](repeating: -1, count: numbers ?? count)
    numbers.withUnsafeMutableBytes { bytes in
      var dispatch = SmDispatch()
      dispatch.kernel = kernel
      dispatch.buffers.0 = bytes.baseAddress
      dispatch.threadgroups = (1, 1, 1)
      dispatch.threadsPerThreadgroup = (UInt32(count), 1, 1)
      dispatch.threadsPerGrid = (UInt32(count), 1, 1)
      #expect(sm_pool_run(pool, &dispatch, 10) == SM_RUN_OK)
    }
    return numbers
  }
}

extension ConstantValue {
  init<Value>(_ typeName: String, _ value: Value) {
    self.init(typeName: typeName, bytes: withUnsafeBytes(of: value) { Array($0) })
  }
}
