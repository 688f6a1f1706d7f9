import CMetalAttention
import Testing

/// A device for one test, closed with it.
final class TestDevice {
  let handle: ma_device

  init() {
    _ = ShippedKernels.areProvided
    var handle: ma_device = 0
    expectOK(ma_device_open(&handle))
    self.handle = handle
  }

  deinit {
    // Closed by the test itself where that is what it tests.
    _ = ma_device_close(handle)
  }

  func buffer(_ length: UInt64) -> TestBuffer {
    var buffer: ma_buffer = 0
    var contents: UnsafeMutableRawPointer?
    expectOK(ma_buffer_create(handle, length, 0, &buffer, &contents))
    return TestBuffer(device: self, handle: buffer, contents: contents, length: length)
  }

  func buffer<Element: BitwiseCopyable>(_ elements: [Element]) -> TestBuffer {
    let buffer = buffer(UInt64(elements.count * MemoryLayout<Element>.stride))
    elements.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(start: buffer.contents, count: bytes.count).copyMemory(from: bytes)
    }
    return buffer
  }

  func pass(_ mode: Int = MA_PASS_CONCURRENT) -> ma_pass {
    var pass: ma_pass = 0
    expectOK(ma_pass_create(handle, UInt32(mode), &pass))
    return pass
  }

  func register(_ source: String, name: String = "test.metal") -> Int32 {
    ma_source_register(handle, name, source, UInt64(source.utf8.count), nil)
  }

  func pipeline(_ kernel: String, _ constants: [MAConstant] = []) -> ma_pipeline {
    var pipeline: ma_pipeline = 0
    expectOK(ma_pipeline_create(handle, kernel, constants, UInt32(constants.count), &pipeline))
    return pipeline
  }
}

/// Commits a pass, waits for it and releases it.
func run(_ pass: ma_pass) {
  expectOK(ma_pass_commit(pass))
  expectOK(ma_pass_wait(pass))
  expectOK(ma_pass_release(pass))
}
