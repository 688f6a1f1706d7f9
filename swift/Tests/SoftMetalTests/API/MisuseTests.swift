import Testing

@testable import SoftMetal

/// Each misuse becomes the command buffer's error: what was encoded before it
/// has run, nothing after it has, and the device goes on.
@Suite struct MisuseTests {
  struct Misuse: CustomTestStringConvertible {
    let testDescription: String
    let code: MTLCommandBufferError.Code
    let mentions: [String]
    let encode: (Workbench, any MTLComputeCommandEncoder) throws -> Void

    init(
      _ name: String, _ code: MTLCommandBufferError.Code, _ mentions: [String],
      _ encode: @escaping (Workbench, any MTLComputeCommandEncoder) throws -> Void
    ) {
      testDescription = name
      self.code = code
      self.mentions = mentions
      self.encode = encode
    }
  }

  static let misuses: [Misuse] = arguments + threadgroupMemory + grids

  static let arguments: [Misuse] = [
    Misuse("unbound buffer", .invalidResource, ["'accumulate'", "buffer(1)", "not bound"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("accumulate"))
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("buffer bound to nil", .invalidResource, ["'increment'", "buffer(0)", "not bound"]) { _, encoder in
      encoder.setBuffer(nil, offset: 0, index: 0)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("offset beyond the buffer", .invalidResource, ["buffer(2)", "offset 17", "16 bytes"]) { bench, encoder in
      encoder.setBuffer(try bench.buffer([1, 2, 3, 4]), offset: 17, index: 2)
    },
    Misuse("negative offset", .invalidResource, ["buffer(2)", "offset -4"]) { bench, encoder in
      encoder.setBuffer(try bench.buffer([1, 2, 3, 4]), offset: -4, index: 2)
    },
    Misuse("offset at the end", .invalidResource, ["buffer(0)", "0 bytes", "at least 4"]) { bench, encoder in
      encoder.setBuffer(try bench.buffer([1, 2]), offset: 8, index: 0)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("offset not aligned", .invalidResource, ["'copy_wide'", "buffer(1)", "16 bytes"]) { bench, encoder in
      let data = try bench.buffer([UInt32](repeating: 0, count: 16))
      encoder.setComputePipelineState(try bench.pipeline("copy_wide"))
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.setBuffer(data, offset: 4, index: 1)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("range too short", .invalidResource, ["'copy_wide'", "buffer(1)", "12 bytes", "16"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("copy_wide"))
      encoder.setBuffer(try bench.buffer([1, 2, 3, 4]), offset: 0, index: 0)
      encoder.setBuffer(try bench.buffer([1, 2, 3]), offset: 0, index: 1)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("bytes too short", .invalidResource, ["'accumulate'", "buffer(1)", "2 bytes", "4"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("accumulate"))
      encoder.setBytes([UInt16(1)], length: 2, index: 1)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("bytes above 4 KiB", .internal, ["buffer(1)", "4097", "4096"]) { _, encoder in
      encoder.setBytes([UInt8](repeating: 0, count: 4097), length: 4097, index: 1)
    },
    Misuse("no bytes", .internal, ["buffer(1)", "0 bytes"]) { _, encoder in
      encoder.setBytes([UInt8(0)], length: 0, index: 1)
    },
    Misuse("buffer index too high", .internal, ["setBuffer", "31", "30"]) { bench, encoder in
      encoder.setBuffer(try bench.buffer([1]), offset: 0, index: 31)
    },
    Misuse("negative index", .internal, ["setBytes", "-1"]) { _, encoder in
      encoder.setValue(1, index: -1)
    },
    Misuse("buffer of another device", .invalidResource, ["buffer(0)", "another device"]) { _, encoder in
      let other: any MTLDevice = try SoftDevice(settings: DeviceSettings(threads: 1))
      encoder.setBuffer(try #require(other.makeBuffer(length: 64)), offset: 0, index: 0)
    },
  ]

  static let threadgroupMemory: [Misuse] = [
    Misuse("length no multiple of 16", .internal, ["threadgroup(0)", "20", "16"]) { _, encoder in
      encoder.setThreadgroupMemoryLength(20, index: 0)
    },
    Misuse("negative length", .internal, ["threadgroup(0)", "-16"]) { _, encoder in
      encoder.setThreadgroupMemoryLength(-16, index: 0)
    },
    Misuse("length above the limit", .internal, ["threadgroup(0)", "32784", "32768"]) { _, encoder in
      encoder.setThreadgroupMemoryLength(32784, index: 0)
    },
    Misuse("length not set", .internal, ["'reverse_threadgroup'", "threadgroup(0)"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("reverse_threadgroup"))
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
    Misuse("variables and arguments", .internal, ["'static_and_dynamic'", "16384", "16400", "32768"]) {
      bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("static_and_dynamic"))
      encoder.setThreadgroupMemoryLength(16400, index: 0)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
  ]

  static let grids: [Misuse] = [
    Misuse("no threads", .internal, ["threadsPerGrid", "4 x 0 x 1"]) { _, encoder in
      encoder.dispatchThreads(MTLSizeMake(4, 0, 1), threadsPerThreadgroup: .line(1))
    },
    Misuse("no threadgroups", .internal, ["threadgroupsPerGrid", "0 x 1 x 1"]) { _, encoder in
      encoder.dispatchThreadgroups(.line(0), threadsPerThreadgroup: .line(1))
    },
    Misuse("negative grid", .internal, ["threadsPerGrid", "-1 x 1 x 1"]) { _, encoder in
      encoder.dispatchThreads(.line(-1), threadsPerThreadgroup: .line(1))
    },
    Misuse("empty threadgroup", .internal, ["threadsPerThreadgroup", "1 x 1 x 0"]) { _, encoder in
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: MTLSizeMake(1, 1, 0))
    },
    Misuse("grid beyond 32 bits", .internal, ["threadsPerGrid", "4294967296"]) { _, encoder in
      encoder.dispatchThreads(.line(1 << 32), threadsPerThreadgroup: .line(1))
    },
    Misuse("threads beyond 32 bits", .internal, ["threadgroupsPerGrid", "4294967296"]) { _, encoder in
      encoder.dispatchThreadgroups(.line(1 << 22), threadsPerThreadgroup: .line(1024))
    },
    Misuse("extreme sizes", .internal, ["threadsPerThreadgroup"]) { _, encoder in
      encoder.dispatchThreadgroups(.line(.max), threadsPerThreadgroup: .line(.max))
    },
    Misuse("more threads than the device has", .internal, ["1024 x 2 x 1", "2048", "1024"]) { _, encoder in
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: MTLSizeMake(1024, 2, 1))
    },
    Misuse("more threads than the kernel allows", .internal, ["'at_most_64'", "65", "64"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("at_most_64"))
      encoder.dispatchThreads(.line(65), threadsPerThreadgroup: .line(65))
    },
    Misuse("matrices in part of a SIMD group", .internal, ["'store_matrix'", "16 x 1 x 1", "32"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("store_matrix"))
      encoder.dispatchThreadgroups(.line(1), threadsPerThreadgroup: .line(16))
    },
    Misuse("matrices in a partial threadgroup", .internal, ["'store_matrix'", "8 x 1 x 1", "32"]) { bench, encoder in
      encoder.setComputePipelineState(try bench.pipeline("store_matrix"))
      encoder.dispatchThreads(.line(40), threadsPerThreadgroup: .line(32))
    },
    Misuse("end twice", .internal, ["endEncoding", "ended"]) { _, encoder in
      encoder.endEncoding()
      encoder.endEncoding()
    },
    Misuse("encode after the end", .internal, ["dispatchThreads", "ended"]) { _, encoder in
      encoder.endEncoding()
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    },
  ]

  @Test(arguments: misuses) func becomesTheError(_ misuse: Misuse) throws {
    let bench = try Workbench(DeviceSettings(threads: 1))
    let data = try bench.buffer([10, 20, 30, 40])
    let increment = try bench.pipeline("increment")
    let commands = try bench.run { encoder in
      encoder.setComputePipelineState(increment)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
      try misuse.encode(bench, encoder)
      encoder.setComputePipelineState(increment)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
    }
    #expect(commands.status == .error)
    let error = try #require(commands.error as? MTLCommandBufferError)
    #expect(error.code == misuse.code)
    for text in misuse.mentions { #expect("\(error)".contains(text), "\(error)") }
    #expect(data.values == [11, 21, 31, 41])

    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(increment)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
    }
    #expect(data.values == [12, 22, 32, 42])
  }

  @Test func dispatchWithoutAPipeline() throws {
    let bench = try Workbench()
    let commands = try bench.run { encoder in
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    }
    #expect(commands.status == .error)
    #expect("\(try #require(commands.error))".contains("setComputePipelineState"))
  }

  @Test func onlyTheFirstErrorIsKept() throws {
    let bench = try Workbench()
    let commands = try bench.run { encoder in
      encoder.setValue(1, index: 77)
      encoder.setThreadgroupMemoryLength(5, index: 0)
      encoder.dispatchThreads(.line(0), threadsPerThreadgroup: .line(0))
    }
    #expect("\(try #require(commands.error))".contains("77"))
  }

  /// An absent argument needs no buffer, a present one does.
  @Test func argumentsOfFunctionConstants() throws {
    let bench = try Workbench()
    let values = MTLFunctionConstantValues()
    var (stride, hasBias) = (UInt32(1), true)
    values.setConstantValue(&stride, type: .uint, index: 7)
    values.setConstantValue(&hasBias, type: .bool, index: 8)
    let data = try bench.buffer([0, 0])
    let commands = try bench.run { encoder in
      encoder.setComputePipelineState(try bench.pipeline("count_by_stride", values))
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.dispatchThreads(.line(2), threadsPerThreadgroup: .line(2))
    }
    #expect("\(try #require(commands.error))".contains("buffer(1) is not bound"))
  }
}
