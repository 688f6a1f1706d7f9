import CMetalAttention
import MetalAttention

/// The default device, open for as long as this object lives.
final class OpenDevice {
  private let handle: ma_device

  init() throws {
    var handle: ma_device = 0
    try check(ma_device_open(&handle))
    self.handle = handle
  }

  deinit {
    _ = ma_device_close(handle)
  }

  func info() throws -> MADeviceInfo {
    var info = MADeviceInfo()
    try check(ma_device_info(handle, &info))
    return info
  }

  /// Built-in and registered kernels.
  func kernelNames() throws -> [String] {
    try libraryText { ma_kernel_names(handle, $0, $1, $2) }.split(separator: "\n").map(String.init)
  }

  /// Registers shader source; `name` is what messages call it.
  func register(source: String, name: String) throws { try register(source, name, nil) }

  /// The same with a macro.
  func register(source: String, name: String, macro: String, value: String) throws {
    try macro.withCString { macro in
      try value.withCString { value in
        try withUnsafePointer(to: MAMacro(name: macro, value: value)) { macros in
          var options = MASourceOptions()
          (options.macros, options.macroCount) = (macros, 1)
          try register(source, name, &options)
        }
      }
    }
  }

  private func register(_ source: String, _ name: String, _ options: UnsafePointer<MASourceOptions>?) throws {
    var source = source
    try source.withUTF8 { bytes in
      try bytes.withMemoryRebound(to: CChar.self) { characters in
        try check(ma_source_register(handle, name, characters.baseAddress, UInt64(characters.count), options))
      }
    }
  }

  /// Compiles what is registered, which makes `kernelNames` exact: names that a macro makes are known only then.
  /// Looking for a kernel that nothing can define does that.
  func compileRegisteredSources() throws {
    do {
      _ = try compile(kernel: "-", constants: [])
    } catch let error as LibraryError where error.status == MA_ERROR_KERNEL_NOT_FOUND {
      return
    }
  }

  /// The function constants that a kernel of the registered sources needs, as false or 0.
  ///
  /// A kernel cannot be compiled before its constants have values, and to find mistakes any value serves.
  func zeroConstants(of kernel: String) -> [MAConstant] { ZeroConstants.of(kernel: kernel, device: handle) }

  /// Compiles one kernel and gives the pipeline back; what it allows and what runs it are returned.
  func compile(kernel: String, constants: [MAConstant]) throws -> (info: MAPipelineInfo, executor: String) {
    var pipeline: ma_pipeline = 0
    try check(ma_pipeline_create(handle, kernel, constants, UInt32(constants.count), &pipeline))
    defer { _ = ma_pipeline_release(pipeline) }
    var info = MAPipelineInfo()
    try check(ma_pipeline_info(pipeline, &info))
    return (info, try libraryText { ma_pipeline_executor(pipeline, $0, $1, $2) })
  }
}
