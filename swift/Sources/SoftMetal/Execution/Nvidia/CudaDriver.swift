import CSoftMetal
import Glibc

/// The functions of the CUDA driver, which comes with the kernel module of NVIDIA's GPUs. Nothing else of CUDA is needed.
struct CudaDriver: @unchecked Sendable {
  typealias Status = Int32
  typealias Pointer = OpaquePointer

  let initialize: @convention(c) (UInt32) -> Status
  let deviceCount: @convention(c) (UnsafeMutablePointer<Int32>) -> Status
  let device: @convention(c) (UnsafeMutablePointer<Int32>, Int32) -> Status
  let deviceName: @convention(c) (UnsafeMutablePointer<CChar>, Int32, Int32) -> Status
  let deviceAttribute: @convention(c) (UnsafeMutablePointer<Int32>, Int32, Int32) -> Status
  let totalMemory: @convention(c) (UnsafeMutablePointer<Int>, Int32) -> Status
  let createContext: @convention(c) (UnsafeMutablePointer<Pointer?>, UInt32, Int32) -> Status
  let destroyContext: @convention(c) (Pointer) -> Status
  let pushContext: @convention(c) (Pointer) -> Status
  let popContext: @convention(c) (UnsafeMutablePointer<Pointer?>) -> Status
  let registerMemory: @convention(c) (UnsafeMutableRawPointer, Int, UInt32) -> Status
  let unregisterMemory: @convention(c) (UnsafeMutableRawPointer) -> Status
  let allocate: @convention(c) (UnsafeMutablePointer<UInt64>, Int) -> Status
  let free: @convention(c) (UInt64) -> Status
  let fill: @convention(c) (UInt64, UInt8, Int) -> Status
  let copyToDevice: @convention(c) (UInt64, UnsafeRawPointer, Int) -> Status
  let copyFromDevice: @convention(c) (UnsafeMutableRawPointer, UInt64, Int) -> Status
  /// In a stream, from memory that the device knows.
  let copyToDeviceLater: @convention(c) (UInt64, UnsafeRawPointer, Int, Pointer) -> Status
  let loadModule:
    @convention(c) (
      UnsafeMutablePointer<Pointer?>, UnsafeRawPointer, UInt32, UnsafeMutablePointer<Int32>?,
      UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> Status
  let unloadModule: @convention(c) (Pointer) -> Status
  let function: @convention(c) (UnsafeMutablePointer<Pointer?>, Pointer, UnsafePointer<CChar>) -> Status
  let global:
    @convention(c) (UnsafeMutablePointer<UInt64>, UnsafeMutablePointer<Int>, Pointer, UnsafePointer<CChar>) -> Status
  let functionAttribute: @convention(c) (UnsafeMutablePointer<Int32>, Int32, Pointer) -> Status
  let launch:
    @convention(c) (
      UnsafePointer<SmCudaLaunch>, Pointer, UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
      UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> Status
  let createStream: @convention(c) (UnsafeMutablePointer<Pointer?>, UInt32) -> Status
  let destroyStream: @convention(c) (Pointer) -> Status
  let queryStream: @convention(c) (Pointer) -> Status
  /// Of nil, the stream that calls without one use.
  let waitForStream: @convention(c) (Pointer?) -> Status
  let writeValue: @convention(c) (Pointer, UInt64, UInt32, UInt32) -> Status
  let createEvent: @convention(c) (UnsafeMutablePointer<Pointer?>, UInt32) -> Status
  let destroyEvent: @convention(c) (Pointer) -> Status
  let recordEvent: @convention(c) (Pointer, Pointer?) -> Status
  let elapsedTime: @convention(c) (UnsafeMutablePointer<Float>, Pointer, Pointer) -> Status
  let errorName: @convention(c) (Status, UnsafeMutablePointer<UnsafePointer<CChar>?>) -> Status

  /// Tells this library from another of the process.
  var identity: UInt { unsafeBitCast(initialize, to: UInt.self) }

  /// SOFTMETAL_CUDA, or the name under which a driver installs itself.
  static var libraryName: String { Files.environment("SOFTMETAL_CUDA") ?? "libcuda.so.1" }

  /// - Throws: `DeviceError` that says what was looked for.
  init(_ name: String = CudaDriver.libraryName) throws(DeviceError) {
    guard let library = dlopen(name, RTLD_NOW | RTLD_LOCAL) else {
      let reason = dlerror().map { String(cString: $0) } ?? "unknown error"
      throw DeviceError(
        "there is no NVIDIA GPU: its driver's library, \(name), cannot be loaded (\(reason)); "
          + "the device 'cpu' needs none")
    }
    func find<Function>(_ symbol: String) throws(DeviceError) -> Function {
      guard let address = dlsym(library, symbol) else {
        throw DeviceError("\(name) lacks \(symbol): the NVIDIA driver has to be of version 520 or newer")
      }
      return unsafeBitCast(address, to: Function.self)
    }
    initialize = try find("cuInit")
    deviceCount = try find("cuDeviceGetCount")
    device = try find("cuDeviceGet")
    deviceName = try find("cuDeviceGetName")
    deviceAttribute = try find("cuDeviceGetAttribute")
    totalMemory = try find("cuDeviceTotalMem_v2")
    createContext = try find("cuCtxCreate_v2")
    destroyContext = try find("cuCtxDestroy_v2")
    pushContext = try find("cuCtxPushCurrent_v2")
    popContext = try find("cuCtxPopCurrent_v2")
    registerMemory = try find("cuMemHostRegister_v2")
    unregisterMemory = try find("cuMemHostUnregister")
    allocate = try find("cuMemAlloc_v2")
    free = try find("cuMemFree_v2")
    fill = try find("cuMemsetD8_v2")
    copyToDevice = try find("cuMemcpyHtoD_v2")
    copyFromDevice = try find("cuMemcpyDtoH_v2")
    copyToDeviceLater = try find("cuMemcpyHtoDAsync_v2")
    loadModule = try find("cuModuleLoadDataEx")
    unloadModule = try find("cuModuleUnload")
    function = try find("cuModuleGetFunction")
    global = try find("cuModuleGetGlobal_v2")
    functionAttribute = try find("cuFuncGetAttribute")
    launch = try find("cuLaunchKernelEx")
    createStream = try find("cuStreamCreate")
    destroyStream = try find("cuStreamDestroy_v2")
    queryStream = try find("cuStreamQuery")
    waitForStream = try find("cuStreamSynchronize")
    writeValue = try find("cuStreamWriteValue32_v2")
    createEvent = try find("cuEventCreate")
    destroyEvent = try find("cuEventDestroy_v2")
    recordEvent = try find("cuEventRecord")
    elapsedTime = try find("cuEventElapsedTime")
    errorName = try find("cuGetErrorName")
    let status = initialize(0)
    guard status == CudaStatus.success else {
      throw DeviceError("the NVIDIA driver does not start: cuInit gave \(describe(status))")
    }
  }

  /// The name of a status, such as CUDA_ERROR_OUT_OF_MEMORY, and its number.
  func describe(_ status: Status) -> String {
    var name: UnsafePointer<CChar>?
    guard errorName(status, &name) == CudaStatus.success, let name else { return "error \(status)" }
    return "\(String(cString: name)) (\(status))"
  }
}
