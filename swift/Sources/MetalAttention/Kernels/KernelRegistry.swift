import CMetalAttention

/// The kernels of a device: sources, libraries compiled on first use, and
/// pipelines by kernel and function constants.
final class KernelRegistry {
  private let device: any MTLDevice
  /// Held while a shader compiles, so that no two threads compile the same.
  private let lock = Lock()
  private var sources = BuiltInSources.make()
  private var pipelines: [PipelineKey: Pipeline] = [:]
  /// Whether all sources know what they include of those that there are now.
  private var hasFoundIncludes = false

  /// Pipelines of built-in kernels by slot; guarded by the lock of
  /// `HandleSpace`, under which dispatches are encoded. In memory of its own,
  /// as in `Pass`.
  private let slots: UnsafeMutableBufferPointer<Pipeline?>

  init(_ device: any MTLDevice) {
    self.device = device
    slots = .allocate(capacity: PipelineSlot.count)
    slots.initialize(repeating: nil)
  }

  deinit {
    slots.deinitialize()
    slots.deallocate()
  }

  /// The pipeline of a built-in kernel, or nil when it is not compiled yet.
  @inline(__always)
  func pipeline(_ slot: PipelineSlot) -> Pipeline? {
    slots[slot.index]
  }

  /// Compiles the pipeline of a built-in kernel. The caller does not hold the
  /// lock of `HandleSpace`.
  func prepare(_ slot: PipelineSlot) throws(StatusError) {
    let pipeline = try pipeline(PipelineKey(kernel: slot.kernel.name, isBuiltIn: true, constants: slot.constants))
    HandleSpace.lock.withLock { slots[slot.index] = pipeline }
  }

  /// Finds or compiles a pipeline: of the caller's kernel, before a built-in one of the same name.
  func pipeline(_ key: PipelineKey) throws(StatusError) -> Pipeline {
    try lock.withLock { () throws(StatusError) in
      if let pipeline = pipelines[key] { return pipeline }
      if !key.isBuiltIn, let library = try callersLibrary(with: key.kernel) { return try make(key, from: library) }
      // Under a key of its own: a source that is registered later may have a kernel of that name.
      let key = key.builtIn
      if let pipeline = pipelines[key] { return pipeline }
      return try make(key, from: builtInLibrary(with: key.kernel))
    }
  }

  /// Those that a kernel of the caller's needs, as false or 0; empty where there is no such kernel.
  func zeroConstants(of kernel: String) throws(StatusError) -> [MAConstant] {
    let library = try lock.withLock { () throws(StatusError) in try callersLibrary(with: kernel) }
    let constants = library?.makeFunction(name: kernel)?.functionConstantsDictionary.values
    return (constants.map { Array($0) } ?? []).sorted { $0.index < $1.index }.compactMap { constant in
      for dtype in DType.allCases {
        guard let place = dtype.metalTypes.firstIndex(of: constant.type) else { continue }
        var zero = MAConstant()
        zero.index = UInt32(clamping: constant.index)
        zero.dtype = dtype.rawValue
        zero.components = UInt32(place + 1)
        return zero
      }
      return nil
    }
  }

  private func make(_ key: PipelineKey, from library: any MTLLibrary) throws(StatusError) -> Pipeline {
    let values = MTLFunctionConstantValues()
    for constant in key.constants { constant.set(in: values) }
    let state: any MTLComputePipelineState
    var reflection: MTLAutoreleasedComputePipelineReflection?
    do {
      let function = try library.makeFunction(name: key.kernel, constantValues: values)
      state = try device.makeComputePipelineState(function: function, options: .bindingInfo, reflection: &reflection)
    } catch {
      throw .compilation(of: key.kernel, error)
    }
    let pipeline = Pipeline(registry: self, kernel: key.kernel, state: state, reflection: reflection)
    pipelines[key] = pipeline
    return pipeline
  }

  /// Adds the caller's source, to be compiled on first use; or puts it in the place of the one of the same name.
  func register(_ source: ShaderSource, replaces: Bool) throws(StatusError) {
    try lock.withLock { () throws(StatusError) in
      let old = replaces ? callersSources.first { $0.name == source.name } : nil
      try requireNewNames(of: source, besides: old)
      let includers = callersSources.filter { $0.includes.sought.contains(source.name) }
      for includer in includers { includer.forgetLibrary() }
      sources.removeAll { $0 === old }
      sources.append(source)
      hasFoundIncludes = false
      guard old != nil || !includers.isEmpty else { return }
      pipelines = pipelines.filter { $0.key.isBuiltIn }
    }
  }

  /// The names of all kernels.
  var kernelNames: [String] {
    lock.withLock { knownNames }
  }

  /// Each once: the caller's kernels may have names of built-in ones.
  private var knownNames: [String] {
    let callers = callersSources.flatMap(\.kernelNames)
    return builtInSources.flatMap(\.kernelNames).filter { !callers.contains($0) } + callers
  }

  private var builtInSources: [ShaderSource] { sources.filter(\.isBuiltIn) }
  private var callersSources: [ShaderSource] { sources.filter { !$0.isBuiltIn } }

  private func builtInLibrary(with kernel: String) throws(StatusError) -> any MTLLibrary {
    guard let source = builtInSources.first(where: { $0.kernelNames.contains(kernel) }) else {
      throw StatusError(
        StatusCode.kernelNotFound, "no kernel is named \(kernel); known: \(knownNames.joined(separator: ", "))")
    }
    return try source.compiled(by: device, among: [])
  }

  /// Nil where no source of the caller's has such a kernel.
  private func callersLibrary(with kernel: String) throws(StatusError) -> (any MTLLibrary)? {
    let sources = callersSources
    for source in sources where source.kernelNames.contains(kernel) {
      do throws(StatusError) {
        let library = try source.compiled(by: device, among: sources)
        if source.kernelNames.contains(kernel) { return library }
      } catch {
        // A text that others include need not compile by itself.
        for other in includers(of: source) {
          let library = try other.compiled(by: device, among: sources)
          if other.kernelNames.contains(kernel) { return library }
        }
        throw error
      }
    }
    // The name may come from a macro, which only the compiler expands. What others include comes last.
    var failure: StatusError?
    let (parts, wholes) = (sources.filter { !includers(of: $0).isEmpty }, sources.filter { includers(of: $0).isEmpty })
    for source in wholes + parts where source.library == nil {
      do throws(StatusError) {
        let library = try source.compiled(by: device, among: sources)
        try requireNewNames(of: source)
        if source.kernelNames.contains(kernel) { return library }
      } catch {
        if failure == nil, wholes.contains(where: { $0 === source }) || wholes.isEmpty { failure = error }
      }
    }
    if let failure, !isBuiltIn(kernel) { throw failure }
    return nil
  }

  /// The caller's sources that include another one.
  private func includers(of source: ShaderSource) -> [ShaderSource] {
    let sources = callersSources
    if !hasFoundIncludes {
      for source in sources { source.findIncludes(among: sources) }
      hasFoundIncludes = true
    }
    return sources.filter { $0 !== source && $0.includes.found.contains(source.name) }
  }

  private func isBuiltIn(_ kernel: String) -> Bool {
    builtInSources.contains { $0.kernelNames.contains(kernel) }
  }

  private func requireNewNames(of source: ShaderSource, besides old: ShaderSource? = nil) throws(StatusError) {
    for other in callersSources where other !== source && other !== old && !other.shares(with: source) {
      for name in source.kernelNames where other.kernelNames.contains(name) {
        throw StatusError(
          StatusCode.invalidArgument, "\(source.name): kernel \(name) is already defined by \(other.name)")
      }
    }
  }
}
