import Glibc
import Testing

@testable import SoftMetal

/// A driver for tests: one GPU without arithmetic. It writes its calls down, and its kernels store the number of their
/// launch where their first argument leads; PTX is text to it. What it cannot know, tests on a GPU have to tell.
final class DriverDouble {
  let path: String
  private let folder: String

  init() throws {
    folder = try #require(WorkFolder.make(in: "/tmp"))
    path = folder + "/libcuda-double.so"
    let source = folder + "/double.c"
    try #require(Files.write(Array(Self.source.utf8), to: source))
    let clang = try Clang.find(.environment)
    let outcome = try #require(ChildProcess.run(clang.path, ["-shared", "-fPIC", "-O1", source, "-o", path]))
    try #require(outcome.status == 0, "\(outcome.output)")
  }

  deinit { ShaderFolder.remove(folder) }

  func driver() throws -> CudaDriver { try CudaDriver(path) }

  func device(_ settings: DeviceSettings = DeviceSettings(threads: 1)) throws -> SoftDevice {
    try SoftDevice(settings: settings, gpu: CudaContext(driver(), ordinal: 0))
  }

  /// What has been called since the last question, one call a line.
  func takeCalls() throws -> [String] {
    typealias Take = @convention(c) () -> UnsafePointer<CChar>
    let take = try unsafeBitCast(symbol("double_take_calls"), to: Take.self)
    return String(cString: take()).split(separator: "\n").map(String.init)
  }

  enum Misbehaviour: Int32 {
    case none = 0
    case fault = 1
    case endless = 2
    case noMemory = 3
    /// Goes on until it is told to stop.
    case stoppable = 4
    /// Is of compute capability 8.0.
    case old = 5
    /// Writes where it likes, and faults.
    case stray = 6
  }

  /// - Parameter launch: from which it misbehaves, from 1.
  func misbehave(_ how: Misbehaviour, from launch: Int32 = 1) throws {
    typealias Set = @convention(c) (Int32, Int32) -> Void
    try unsafeBitCast(symbol("double_misbehave"), to: Set.self)(how.rawValue, launch)
  }

  private func symbol(_ name: String) throws -> UnsafeMutableRawPointer {
    let library = try #require(dlopen(path, RTLD_NOW))
    return try #require(dlsym(library, name))
  }

  private static let source = """
    #include <stdarg.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>

    static char calls[1 << 16], taken[1 << 16];
    static int misbehaviour, from_launch, launches, is_lost;
    static void *uploaded;
    static volatile uint32_t *stop;

    static void note(const char *format, ...) {
      const size_t used = strlen(calls);
      va_list arguments;
      va_start(arguments, format);
      vsnprintf(calls + used, sizeof(calls) - used, format, arguments);
      va_end(arguments);
    }

    const char *double_take_calls(void) {
      memcpy(taken, calls, sizeof(calls));
      calls[0] = 0;
      return taken;
    }
    void double_misbehave(int how, int from) { misbehaviour = how, from_launch = from, launches = 0; }
    static int misbehaves(int how) { return misbehaviour == how && launches >= from_launch; }

    static int hangs(void) { return misbehaves(1) || misbehaves(2) || misbehaves(4) || misbehaves(6); }

    int cuInit(unsigned flags) { return 0; }
    int cuDeviceGetCount(int *count) { return *count = 1, 0; }
    int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
    int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Double"), 0; }
    int cuDeviceGetAttribute(int *value, int attribute, int device) {
      return *value = attribute == 75 ? (misbehaviour == 5 ? 8 : 9) : attribute == 76 ? 0 : attribute == 16 ? 132 : 1, 0;
    }
    int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = (size_t)1 << 37, 0; }
    int cuCtxCreate_v2(void **context, unsigned flags, int device) {
      if (is_lost) return 700;
      return note("create context\\n"), *context = malloc(1), 0;
    }
    int cuCtxDestroy_v2(void *context) { return note("destroy context\\n"), free(context), 0; }
    int cuCtxPushCurrent_v2(void *context) { return 0; }
    int cuCtxPopCurrent_v2(void **context) { return 0; }
    int cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags) {
      if (misbehaviour == 3) return 2;
      return note("register %zu %u\\n", size, flags), 0;
    }
    int cuMemHostUnregister(void *pointer) { return note("unregister\\n"), 0; }
    int cuMemAlloc_v2(uint64_t *address, size_t size) {
      if (misbehaviour == 3) return 2;
      return *address = (uint64_t)(uintptr_t)malloc(size), note("allocate %zu\\n", size), 0;
    }
    int cuMemFree_v2(uint64_t address) { return note("free\\n"), free((void *)(uintptr_t)address), 0; }
    int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t size) {
      return note("fill %d %zu\\n", value, size), memset((void *)(uintptr_t)address, value, size), 0;
    }
    int cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t size) {
      return note("copy %llx %zu %d\\n", (unsigned long long)target, size, *(const unsigned char *)source), 0;
    }
    int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t size) {
      return memcpy(target, (void *)(uintptr_t)source, size), 0;
    }
    int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t size, void *stream) {
      uploaded = (void *)(uintptr_t)target;
      return note("upload %zu\\n", size), memcpy(uploaded, source, size), 0;
    }
    int cuModuleLoadDataEx(void **module, const void *ptx, unsigned count, int *options, void **values) {
      if (!strstr(ptx, ".entry sm_entry_1")) return snprintf(values[0], (size_t)values[1], "no entry"), 218;
      return *module = strdup(ptx), 0;
    }
    int cuModuleUnload(void *module) { return note("unload\\n"), free(module), 0; }
    int cuModuleGetFunction(void **function, void *module, const char *name) {
      // The second one is told by its address.
      return *function = (char *)module + (strstr(name, "_partial") != 0), strstr(module, name) ? 0 : 500;
    }
    int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name) {
      const char *place = strstr(module, name);
      if (!place) return 500;
      const char *type = place;
      while (type > (const char *)module && *type != '.') --type;
      *size = atoi(type + 2) / 8;
      *address = name[3] == 'c' ? 0xc0 : name[4] == 'e' && name[5] == 'f' ? 0xdf : 0xde;
      return 0;
    }
    int cuFuncGetAttribute(int *value, int attribute, void *function) {
      return *value = attribute == 0 ? 768 : strstr(function, ".shared") ? 64 : 0, 0;
    }
    struct attribute { uint32_t id, padding, value, rest[15]; };
    struct launch { uint32_t grid[3], block[3], shared; void *stream; struct attribute *attributes; uint32_t count; };
    int cuLaunchKernelEx(const struct launch *launch, void *function, void **arguments, void **extra) {
      const uint32_t *grid = launch->grid, *block = launch->block;
      const int hung = hangs();
      if (hung && misbehaviour == 1) return 700;
      ++launches;
      stop = *(uint32_t **)arguments[0];
      void **buffers = (void **)arguments[0] + 2;
      const uint32_t *first = (const uint32_t *)(buffers + 31) + 31;
      note("launch %u,%u,%u of %u,%u,%u from %u,%u,%u shared %u%s%s\\n", grid[0], grid[1], grid[2], block[0], block[1],
           block[2], first[0], first[1], first[2], launch->shared, (uintptr_t)function & 1 ? " partial" : "",
           launch->count == 1 && launch->attributes->id == 6 && launch->attributes->value == 1 ? " early" : "");
      if (buffers[1] == uploaded) note("reads %u\\n", *(uint32_t *)buffers[1]);
      // What comes behind a launch that does not end does not begin.
      if (!hung) *((uint32_t **)arguments[0])[1] = misbehaves(6) ? ~0u : first[16];
      if (!hangs()) *(uint32_t *)buffers[0] = launches;
      return 0;
    }
    int cuStreamCreate(void **stream, unsigned flags) { return *stream = malloc(1), 0; }
    int cuStreamDestroy_v2(void *stream) { return free(stream), 0; }
    int cuStreamQuery(void *stream) {
      const int faults = misbehaves(1) || misbehaves(6);
      is_lost |= faults;
      return faults ? 700 : misbehaves(2) || (misbehaves(4) && !*stop) ? 600 : 0;
    }
    int cuStreamSynchronize(void *stream) { return note("synchronize %d\\n", stream != 0), 0; }
    int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags) {
      return *(volatile uint32_t *)address = value, 0;
    }
    int cuEventCreate(void **event, unsigned flags) { return *event = malloc(1), 0; }
    int cuEventDestroy_v2(void *event) { return free(event), 0; }
    int cuEventRecord(void *event, void *stream) { return 0; }
    int cuEventElapsedTime(float *milliseconds, void *start, void *end) { return *milliseconds = 2, 0; }
    int cuGetErrorName(int status, const char **name) {
      return *name = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER", 0;
    }
    """
}
