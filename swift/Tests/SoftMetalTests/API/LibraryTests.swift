import Testing

@testable import SoftMetal

@Suite struct LibraryTests {
  let bench: Workbench

  init() throws {
    bench = try Workbench()
  }

  private func constants(stride: UInt32?, bias: Bool?) -> MTLFunctionConstantValues {
    let values = MTLFunctionConstantValues()
    if var stride { values.setConstantValue(&stride, type: .uint, index: 7) }
    if var bias { values.setConstantValue(&bias, type: .bool, index: 8) }
    return values
  }

  private func expectError(
    _ code: MTLLibraryError.Code, mentioning parts: String..., from body: () throws -> Any,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(sourceLocation: sourceLocation) {
      _ = try body()
    } throws: { error in
      (error as? MTLLibraryError)?.code == code && parts.allSatisfy { "\(error)".contains($0) }
    }
  }

  @Test func listsItsFunctions() {
    #expect(bench.library.functionNames.contains("increment"))
    #expect(bench.library.functionNames.contains("at_most_64"))
    #expect(bench.library.makeFunction(name: "increment")?.name == "increment")
  }

  @Test func unknownFunctions() {
    #expect(bench.library.makeFunction(name: "nothing") == nil)
    expectError(.functionNotFound, mentioning: "'nothing'", "increment", "copy_wide") {
      try bench.library.makeFunction(name: "nothing", constantValues: MTLFunctionConstantValues())
    }
  }

  @Test func sourceThatDoesNotCompile() {
    expectError(.compileFailure, mentioning: "error") {
      try bench.device.makeLibrary(source: "kernel void broken(device float *x [[buffer(0)]]) { y = 1; }", options: nil)
    }
  }

  @Test func missingConstants() throws {
    // A function there is, which says what it needs; no pipeline comes of it.
    let function = try #require(bench.library.makeFunction(name: "count_by_stride"))
    #expect(function.functionConstantsDictionary["stride"]?.index == 7)
    #expect(function.functionConstantsDictionary["stride"]?.type == .uint)
    expectError(.compileFailure, mentioning: "count_by_stride", "stride") {
      try bench.device.makeComputePipelineState(function: function)
    }
    expectError(.compileFailure, mentioning: "count_by_stride", "stride") {
      try bench.library.makeFunction(name: "count_by_stride", constantValues: constants(stride: nil, bias: false))
    }
  }

  @Test func constantsOfAnotherType() {
    let values = constants(stride: nil, bias: false)
    var stride: UInt16 = 1
    values.setConstantValue(&stride, type: .ushort, index: 7)
    expectError(.compileFailure, mentioning: "stride") {
      try bench.library.makeFunction(name: "count_by_stride", constantValues: values)
    }
  }

  @Test func impossibleConstantIndex() {
    let values = constants(stride: 1, bias: false)
    var stride: UInt32 = 1
    values.setConstantValue(&stride, type: .uint, index: -1)
    expectError(.unsupported, mentioning: "-1") {
      try bench.library.makeFunction(name: "count_by_stride", constantValues: values)
    }
  }

  @Test func eachCombinationOfConstantsHasItsOwnValues() throws {
    let data = try bench.buffer([0, 0, 0, 0])
    let bias = try bench.buffer([100, 200, 300, 400])
    let plain = try bench.pipeline("count_by_stride", constants(stride: 2, bias: false))
    let biased = try bench.pipeline("count_by_stride", constants(stride: 5, bias: true))
    func run(_ pipeline: any MTLComputePipelineState, _ bias: (any MTLBuffer)?) throws -> [UInt32] {
      try bench.runCleanly { encoder in
        encoder.setComputePipelineState(pipeline)
        encoder.setBuffer(data, offset: 0, index: 0)
        encoder.setBuffer(bias, offset: 0, index: 1)
        encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
      }
      return data.values
    }
    #expect(try run(plain, nil) == [0, 2, 4, 6])
    #expect(try run(biased, bias) == [100, 205, 310, 415])
    #expect(try run(plain, nil) == [0, 2, 4, 6])
  }

  @Test func functionsOfTheSameConstantsShareTheirObject() throws {
    func function(stride: UInt32) throws -> any MTLFunction {
      try bench.library.makeFunction(name: "count_by_stride", constantValues: constants(stride: stride, bias: true))
    }
    let functions = try [function(stride: 2), function(stride: 2), function(stride: 3)]
    let shaders = try functions.map { try #require($0 as? SoftFunction).shader }
    #expect(shaders[0] === shaders[1])
    #expect(shaders[0] !== shaders[2])
  }

  @Test func pipelinesKnowTheirKernel() throws {
    let small = try bench.pipeline("at_most_64")
    #expect(small.maxTotalThreadsPerThreadgroup == 64)
    #expect(small.threadExecutionWidth == 32)
    #expect(small.staticThreadgroupMemoryLength == 0)
    #expect(try bench.pipeline("increment").maxTotalThreadsPerThreadgroup == 1024)
    #expect(try bench.pipeline("static_and_dynamic").staticThreadgroupMemoryLength == 16384)
  }

  @Test func tooMuchThreadgroupMemory() throws {
    let function = try #require(bench.library.makeFunction(name: "too_much_static"))
    expectError(.compileFailure, mentioning: "too_much_static", "32772", "32768") {
      try bench.device.makeComputePipelineState(function: function)
    }
  }

  /// What reflection says of a kernel's arguments, one a line.
  private func reflected(_ name: String, _ values: MTLFunctionConstantValues) throws -> [String] {
    let function = try bench.library.makeFunction(name: name, constantValues: values)
    var reflection: MTLAutoreleasedComputePipelineReflection?
    _ = try bench.device.makeComputePipelineState(function: function, options: .bindingInfo, reflection: &reflection)
    return try #require(reflection).bindings.map { binding in
      let buffer = (binding as? any MTLBufferBinding).map { ($0.bufferDataSize, $0.bufferAlignment) }
      let memory = (binding as? any MTLThreadgroupBinding).map {
        ($0.threadgroupMemoryDataSize, $0.threadgroupMemoryAlignment)
      }
      let (size, alignment) = try #require(buffer ?? memory)
      #expect(binding.isArgument)
      return "\(binding.type)(\(binding.index)) \(binding.name) \(binding.access) \(size) \(alignment)"
        + (binding.isUsed ? "" : " unused")
    }
  }

  @Test func reflectsTheArgumentsThatExist() throws {
    let none = MTLFunctionConstantValues()
    #expect(
      try reflected("copy_wide", none)
        == ["buffer(0) source readOnly 16 16", "buffer(1) target readWrite 16 16"])
    #expect(
      try reflected("accumulate", none) == ["buffer(0) data readWrite 4 4", "buffer(1) value readOnly 4 4"])
    #expect(
      try reflected("reverse_threadgroup", none)
        == ["buffer(0) data readWrite 4 4", "threadgroupMemory(0) scratch readWrite 4 4"])
    #expect(try reflected("count_by_stride", constants(stride: 1, bias: false)) == ["buffer(0) data readWrite 4 4"])
    #expect(
      try reflected("count_by_stride", constants(stride: 1, bias: true))
        == ["buffer(0) data readWrite 4 4", "buffer(1) bias readOnly 4 4"])
  }

  @Test func reflectsNothingUnlessAsked() throws {
    let function = try #require(bench.library.makeFunction(name: "increment"))
    var reflection: MTLAutoreleasedComputePipelineReflection?
    _ = try bench.device.makeComputePipelineState(function: function, options: [], reflection: &reflection)
    #expect(reflection == nil)
    _ = try bench.device.makeComputePipelineState(function: function, options: .bindingInfo, reflection: nil)
  }

  /// Declarations whose names and qualifiers are not plain to see.
  @Test func reflectsNamesAndAccessByTheType() throws {
    let source = """
      #include <metal_stdlib>
      using namespace metal;
      typedef const device float *Input;
      template <typename T>
      kernel void typed(device T *first, T device *const second, device float (&third)[4 * 2],
                        device float fourth[4], volatile device int *fifth, device float *, device const float &seventh,
                        threadgroup float (&eighth)[8]) {
        eighth[0] = seventh;
        third[0] = first[0] + eighth[0];
        fourth[0] = second[0] + fifth[0];
      }
      template [[host_name("of_const")]] kernel void typed<const float>(
          device const float *, const float device *const, device float (&)[8], device float *, volatile device int *,
          device float *, device const float &, threadgroup float (&)[8]);
      """
    let library = try bench.device.makeLibrary(source: source, options: nil)
    let function = try #require(library.makeFunction(name: "of_const"))
    var reflection: MTLAutoreleasedComputePipelineReflection?
    _ = try bench.device.makeComputePipelineState(function: function, options: .bindingInfo, reflection: &reflection)
    let bindings = try #require(reflection).bindings
    #expect(bindings.map(\.name) == ["first", "second", "third", "fourth", "fifth", "", "seventh", "eighth"])
    #expect(
      bindings.map(\.access)
        == [.readOnly, .readOnly, .readWrite, .readWrite, .readWrite, .readWrite, .readOnly, .readWrite])
    #expect(bindings.map(\.isUsed)[5] == false)
  }
}
