// The device API: Apple's framework, or the software device that declares the
// same API. The rest of the library cannot tell them apart.
#if canImport(Metal)
  @_exported import Metal

  let backendName = "Metal"

  /// The default device, or one by its index.
  func systemDevice(_ which: String?) -> SystemDevice {
    guard let which else {
      return MTLCreateSystemDefaultDevice().map { .device($0) } ?? .unavailable("Metal finds no GPU")
    }
    guard let index = Int(which), index >= 0 else {
      return .notUnderstood("'\(which)' is no device of a Mac; expected an index, from 0")
    }
    let devices = MTLCopyAllDevices()
    guard index < devices.count else {
      return .unavailable("there is no device \(index): Metal has \(devices.count), counted from 0")
    }
    return .device(devices[index])
  }

  /// What runs a kernel.
  func executor(of state: any MTLComputePipelineState) -> String { "GPU" }

  /// Metal does not tell.
  func coreCount(of device: any MTLDevice) -> Int? { nil }

  /// The GPUs of M1 to M4 multiply matrices by the units of all other arithmetic; of later ones nothing is known here.
  func hasMatrixUnits(_ device: any MTLDevice) -> Bool { false }

  /// A lost GPU shows in the errors of its command buffers.
  func lossReason(of device: any MTLDevice) -> String? { nil }

  /// Metal compiles by itself.
  func provideKernels(_ archive: UnsafeRawBufferPointer) -> Bool { true }
#else
  @_exported import SoftMetal

  let backendName = "SoftMetal"

  /// The default device, or the one that is named.
  func systemDevice(_ which: String?) -> SystemDevice {
    do {
      return .device(try openDevice(which))
    } catch {
      return error.isOfName ? .notUnderstood(error.description) : .unavailable(error.description)
    }
  }

  /// Takes kernels that were compiled ahead of time. False where the archive has none.
  func provideKernels(_ archive: UnsafeRawBufferPointer) -> Bool { PrecompiledShaders.provide(archive) }
#endif
