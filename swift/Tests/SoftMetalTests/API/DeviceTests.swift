import Testing

@testable import SoftMetal

@Suite struct DeviceTests {
  @Test func limits() throws {
    let device: any MTLDevice = try SoftDevice(settings: DeviceSettings(threads: 2))
    #expect(device.name.hasPrefix("SoftMetal ("))
    #expect(device.name.hasSuffix(", 2 threads)"))
    #expect(device.hasUnifiedMemory)
    #expect(device.maxThreadgroupMemoryLength == 32768)
    #expect(device.maxThreadsPerThreadgroup.width == 1024)
    #expect(device.maxBufferLength > 0)
    #expect(device.recommendedMaxWorkingSetSize >= UInt64(device.maxBufferLength))
    #expect(device.currentAllocatedSize == 0)
    for family in [MTLGPUFamily.apple7, .apple8, .apple9, .metal3] {
      #expect(device.supportsFamily(family))
    }
  }

  @Test func everyCallMakesANewDevice() throws {
    let first = try #require(MTLCreateSystemDefaultDevice())
    let second = try #require(MTLCreateSystemDefaultDevice())
    #expect(first !== second)
    #expect(first.registryID != second.registryID)
  }

  @Test func settingsComeFromTheEnvironment() throws {
    let variables = [
      "SOFTMETAL_THREADS": "3", "SOFTMETAL_TIME_LIMIT": "0.5", "SOFTMETAL_ORDER": "shuffle:9",
      "SOFTMETAL_GUARD": "1", "SOFTMETAL_FAIL": "pipeline:12", "SOFTMETAL_CHECK": "lockstep",
      "SOFTMETAL_UNWRITTEN": "1",
    ]
    let settings = try DeviceSettings(environment: { variables[$0] })
    #expect(settings.threads == 3)
    #expect(settings.timeLimit == 0.5)
    #expect(settings.order == .shuffle(seed: 9))
    #expect(settings.guardsBuffers)
    #expect(!settings.zeroesPrivate)
    #expect(settings.checksLockstep)
    #expect(settings.failure?.kind == .pipeline)
    #expect(settings.failure?.number == 12)
  }

  @Test func settingsHaveDefaults() throws {
    let settings = try DeviceSettings(environment: { _ in nil })
    #expect(settings.threads >= 1)
    #expect(settings.timeLimit == 60)
    #expect(settings.order == .forward)
    #expect(!settings.guardsBuffers)
    #expect(settings.zeroesPrivate)
    #expect(settings.failure == nil)
  }

  @Test(arguments: [
    ("SOFTMETAL_THREADS", "0"), ("SOFTMETAL_THREADS", "257"), ("SOFTMETAL_THREADS", "two"), ("SOFTMETAL_THREADS", ""),
    ("SOFTMETAL_TIME_LIMIT", "-1"), ("SOFTMETAL_TIME_LIMIT", "nan"), ("SOFTMETAL_TIME_LIMIT", "soon"),
    ("SOFTMETAL_CACHE_LIMIT", "1e6"), ("SOFTMETAL_CACHE_LIMIT", "-1"),
    ("SOFTMETAL_ORDER", "backward"), ("SOFTMETAL_ORDER", "shuffle:"), ("SOFTMETAL_ORDER", "shuffle:-1"),
    ("SOFTMETAL_GUARD", "yes"), ("SOFTMETAL_CHECK", "all"), ("SOFTMETAL_EXECUTOR", "fibres"),
    ("SOFTMETAL_COUNTERS", "draw"), ("SOFTMETAL_UNWRITTEN", "all"), ("SOFTMETAL_MATRIX_UNITS", "yes"),
    ("SOFTMETAL_ALIGNED_BARRIERS", "yes"),
    ("SOFTMETAL_FAIL", "buffer"), ("SOFTMETAL_FAIL", "buffer:0"),
    ("SOFTMETAL_FAIL", "kernel:1"), ("SOFTMETAL_FAIL", "pass:1:2"),
  ])
  func badSettingsAreRefused(name: String, text: String) {
    #expect {
      try DeviceSettings(environment: { $0 == name ? text : nil })
    } throws: { error in
      "\(error)".contains(name) && "\(error)".contains("\"\(text)\"")
    }
  }

  @Test func rawValuesAreApples() {
    #expect(MTLDataType.bool.rawValue == 53)
    #expect(MTLDataType.bfloat.rawValue == 121)
    #expect(MTLDataType.float4.rawValue == 6)
    #expect(MTLDataType.uchar4.rawValue == 52)
    #expect(MTLDataType.ulong4.rawValue == 88)
    #expect([MTLDataType.bool3, .half2, .float3, .long4, .none].map(\.size) == [4, 4, 16, 32, 0])
    #expect(MTLDataType.ushort3.shaderName == "ushort3")
    #expect(MTLLanguageVersion.version3_1.rawValue == 3 << 16 | 1)
    #expect(MTLGPUFamily.metal3.rawValue == 5001)
    #expect(MTLCommandBufferStatus.error.rawValue == 5)
    #expect(MTLCommandBufferError.Code.invalidResource.rawValue == 9)
    #expect(MTLLibraryError.Code.functionNotFound.rawValue == 5)
  }
}
