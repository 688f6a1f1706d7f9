/// The C side of SoftMetal: the format of a compiled shader object, and the
/// pool of worker threads that runs its kernels.
///
/// The format is shared by three parties: the MSL headers (which describe each
/// kernel in these structs at compile time), the Swift side (which reads them
/// after loading an object) and the executor (which calls `run`).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with any change of a struct in this header.
#define SM_OBJECT_VERSION 3

enum {
  SM_MAX_BUFFERS = 31,
  SM_SIMD_WIDTH = 32,
  SM_MAX_THREADS = 1024,
  SM_MAX_THREADGROUP_MEMORY = 32768,
};

enum {
  SM_ARGUMENT_BUFFER = 0,
  SM_ARGUMENT_THREADGROUP = 1,
};

/// A buffer or threadgroup-memory argument of a kernel.
typedef struct SmArgument {
  uint32_t kind;   ///< SM_ARGUMENT_*
  uint32_t index;  ///< of [[buffer(n)]] or [[threadgroup(n)]]
  /// Bytes the bound range must hold at least: the size of the referent of a
  /// reference, of one element of a pointer.
  uint64_t minimumLength;
  uint32_t alignment;  ///< of the referent, bytes
  /// Null, or whether the argument exists under the object's function
  /// constants ([[function_constant(name)]] on an argument).
  int32_t (*present)(void);
} SmArgument;

/// A program-scope function constant. The loader writes `value` and `defined`
/// before it calls `SmObject.initialize`.
typedef struct SmFunctionConstant {
  const char *name;
  uint32_t index;
  uint32_t size;         ///< bytes of the value
  const char *typeName;  ///< as written, such as "bool" or "uint"
  void *value;
  uint8_t *defined;
} SmFunctionConstant;

enum {
  SM_EXECUTION_LOOP = 0,    ///< threads as iterations of a plain loop
  SM_EXECUTION_FIBRES = 1,  ///< one fibre a thread
  SM_EXECUTION_VECTORS = 2,  ///< one flow of control a SIMD group
};

struct SmThreadgroup;

/// An entry point.
typedef struct SmKernel {
  const char *name;
  uint32_t execution;   ///< SM_EXECUTION_*
  uint32_t maxThreads;  ///< [[max_total_threads_per_threadgroup]], or 1024
  uint32_t usesMatrices;  ///< needs whole SIMD groups
  /// LOOP: no argument tells threadgroups apart, so that neighbours may run as one.
  uint32_t seesGridOnly;
  uint32_t argumentCount;
  const SmArgument *arguments;
  /// Indices into SmObject.constants of those the kernel needs values of.
  uint32_t constantCount;
  const uint32_t *constants;
  /// Bytes of `threadgroup` variables; known once the object is loaded.
  const uint32_t *staticThreadgroupMemory;
  /// LOOP: runs every thread of the threadgroup. FIBRES: runs the calling
  /// fibre's thread. VECTORS: null.
  void (*run)(const struct SmThreadgroup *group);
  /// VECTORS: runs a SIMD group. Otherwise null.
  void (*runSimdgroup)(const struct SmThreadgroup *group, uint32_t simdgroup);
} SmKernel;

/// The table a compiled shader exports under the name `sm_object`.
typedef struct SmObject {
  uint32_t version;  ///< SM_OBJECT_VERSION
  uint32_t kernelCount;
  const SmKernel *kernels;
  uint32_t constantCount;
  uint32_t reserved;
  const SmFunctionConstant *constants;
  /// Evaluates constants that derive from function constants.
  void (*initialize)(void);
} SmObject;

/// One dispatch, as the encoder recorded it.
typedef struct SmDispatch {
  const SmKernel *kernel;
  void *buffers[SM_MAX_BUFFERS];                 ///< null: not bound
  uint32_t threadgroupLengths[SM_MAX_BUFFERS];   ///< bytes of [[threadgroup(n)]]
  uint32_t threadgroups[3];
  uint32_t threadsPerThreadgroup[3];
  uint32_t threadsPerGrid[3];  ///< bounds of the last, partial threadgroups
} SmDispatch;

typedef struct SmPool SmPool;

/// A pool that runs dispatches on `threads` worker threads (at least 1).
/// Null when its memory or threads cannot be had.
SmPool *sm_pool_create(uint32_t threads);
/// Ends the workers. No dispatch may be running.
void sm_pool_destroy(SmPool *pool);
uint32_t sm_pool_threads(const SmPool *pool);

enum {
  SM_RUN_OK = 0,
  SM_RUN_TIMEOUT = 1,           ///< the kernel was stopped after `timeLimit`
  SM_RUN_DIVERGENT_BARRIER = 2, ///< lanes of one SIMD group waited at different threadgroup barriers
};

/// Runs one dispatch to its end; the calling thread waits. Every threadgroup
/// runs once, in any order. `timeLimit` is in seconds; 0 means none. The calling
/// thread keeps the signal unblocked that ends a kernel, SIGRTMAX - 3.
/// One dispatch at a time per pool.
int32_t sm_pool_run(SmPool *pool, const SmDispatch *dispatch, double timeLimit);

/// The highest level of the x86-64 psABI (1 to 4) that this processor has, with
/// the operating system keeping its registers. 0 on another architecture.
int32_t sm_x86_64_level(void);

#ifdef __cplusplus
}
#endif
