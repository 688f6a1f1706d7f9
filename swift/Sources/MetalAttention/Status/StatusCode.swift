import CMetalAttention

/// What a function of the C ABI returns; `metal_attention.h` says when.
enum StatusCode {
  static let ok = Int32(MA_OK)
  static let invalidArgument = Int32(MA_ERROR_INVALID_ARGUMENT)
  static let invalidHandle = Int32(MA_ERROR_INVALID_HANDLE)
  static let invalidState = Int32(MA_ERROR_INVALID_STATE)
  static let bufferTooSmall = Int32(MA_ERROR_BUFFER_TOO_SMALL)
  static let overflow = Int32(MA_ERROR_OVERFLOW)
  static let unsupported = Int32(MA_ERROR_UNSUPPORTED)
  static let outOfMemory = Int32(MA_ERROR_OUT_OF_MEMORY)
  static let shaderCompilation = Int32(MA_ERROR_SHADER_COMPILATION)
  static let kernelNotFound = Int32(MA_ERROR_KERNEL_NOT_FOUND)
  static let deviceUnavailable = Int32(MA_ERROR_DEVICE_UNAVAILABLE)
  static let execution = Int32(MA_ERROR_EXECUTION)
}
