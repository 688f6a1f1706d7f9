/// The C side of SoftMetal: the format of a compiled shader object, and the
/// pool of worker threads that runs its kernels.
///
/// The format is shared by three parties: the MSL headers (which describe each
/// kernel in these structs at compile time), the Swift side (which reads them
/// after loading an object) and the executor (which calls `run`).
#pragma once

#include <stdint.h>

// C++ for OpenCL has no pointers to functions and a memory of its own for literals; the layout is the same.
#ifdef __OPENCL_CPP_VERSION__
#define SM_FUNCTION(result, name, ...) const void *name
#define SM_LITERAL_CHAR const __constant char
#else
#define SM_FUNCTION(result, name, ...) result (*name)(__VA_ARGS__)
#define SM_LITERAL_CHAR const char
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with any change of a struct in this header.
#define SM_OBJECT_VERSION 7

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

enum {
  SM_ACCESS_READ = 0,
  SM_ACCESS_READ_WRITE = 1,
};

/// A buffer or threadgroup-memory argument of a kernel.
typedef struct SmArgument {
  uint32_t kind;   ///< SM_ARGUMENT_*
  uint32_t index;  ///< of [[buffer(n)]] or [[threadgroup(n)]]
  /// Bytes the bound range must hold at least: the size of the referent of a
  /// reference, of one element of a pointer. 0 where the kernel does not use it.
  uint64_t minimumLength;
  uint32_t alignment;  ///< of the referent, bytes
  uint32_t access;     ///< SM_ACCESS_*, by the type: READ for `constant` and for const
  /// Null, or whether the argument exists under the object's function
  /// constants ([[function_constant(name)]] on an argument).
  SM_FUNCTION(int32_t, present, void);
} SmArgument;

/// A program-scope function constant. The loader writes `value` and `defined`
/// before it calls `SmObject.initialize`.
typedef struct SmFunctionConstant {
  SM_LITERAL_CHAR *name;
  uint32_t index;
  uint32_t size;         ///< bytes of the value
  SM_LITERAL_CHAR *typeName;  ///< as written, such as "bool" or "uint"
  void *value;
  uint8_t *defined;
} SmFunctionConstant;

/// A constant that derives from those, which `SmObject.initialize` sets.
typedef struct SmDerivedConstant {
  void *value;
  uint64_t size;  ///< bytes
} SmDerivedConstant;

enum {
  SM_EXECUTION_LOOP = 0,    ///< threads as iterations of a plain loop
  SM_EXECUTION_THREADS = 1,  ///< one flow of control a thread
  SM_EXECUTION_VECTORS = 2,  ///< one flow of control a SIMD group
};

/// What the threadgroups of a dispatch have to be.
enum {
  SM_SIMDGROUPS_ANY = 0,
  SM_SIMDGROUPS_WHOLE = 1,  ///< a multiple of 32 threads, for simdgroup matrices
  SM_SIMDGROUPS_ROWS = 2,   ///< a multiple of 32 threads wide, as the source was compiled
};

struct SmThreadgroup;

/// An entry point.
typedef struct SmKernel {
  SM_LITERAL_CHAR *name;
  uint32_t execution;   ///< SM_EXECUTION_*
  uint32_t maxThreads;  ///< [[max_total_threads_per_threadgroup]], or 0
  uint32_t simdgroups;  ///< SM_SIMDGROUPS_*
  /// LOOP: no argument tells threadgroups apart, so that neighbours may run as one.
  uint32_t seesGridOnly;
  uint32_t argumentCount;
  const SmArgument *arguments;
  SM_LITERAL_CHAR *const *argumentNames;  ///< of each of them; empty where the source gives none
  /// Indices into SmObject.constants of those the kernel needs values of.
  uint32_t constantCount;
  const uint32_t *constants;
  /// Bytes of `threadgroup` variables; known after `SmObject.initialize`.
  const uint32_t *staticThreadgroupMemory;
  /// LOOP: runs every thread of the threadgroup. THREADS: runs the calling
  /// one. VECTORS: null.
  SM_FUNCTION(void, run, const struct SmThreadgroup *group);
  /// VECTORS: runs a SIMD group. Otherwise null.
  SM_FUNCTION(void, runSimdgroup, const struct SmThreadgroup *group, uint32_t simdgroup);
} SmKernel;

/// The table a compiled shader exports under the name `sm_object`.
typedef struct SmObject {
  uint32_t version;  ///< SM_OBJECT_VERSION
  uint32_t kernelCount;
  const SmKernel *kernels;
  uint32_t constantCount;
  uint32_t derivedCount;
  const SmFunctionConstant *constants;
  const SmDerivedConstant *derived;
  /// Places threadgroup variables and evaluates constants that derive from function constants.
  SM_FUNCTION(void, initialize, void);
  /// Null, or a GPU's code for the only kernel, which has no `run`: `sm_entry_1`, with an `SmGpuDispatch` for
  /// parameter, and `sm_constant_N`, `sm_defined_N` and `sm_derived_N`, each of which has the value of its number here.
  SM_LITERAL_CHAR *ptx;
} SmObject;

/// What a kernel on a GPU gets: the arguments, and the part of the grid that one launch runs, whose threadgroups are of
/// one size.
typedef struct SmGpuDispatch {
  /// Not 0: threads end at the next turn of a loop that nothing bounds. First, where the compiler pass looks for it.
  uint32_t *stop;
  /// Gets `number` once everything before this dispatch has ended.
  uint32_t *started;
  void *buffers[SM_MAX_BUFFERS];  ///< addresses on the device
  uint32_t threadgroupOffsets[SM_MAX_BUFFERS];  ///< of [[threadgroup(n)]] in the memory of arguments
  uint32_t firstThreadgroup[3];
  uint32_t threadgroups[3];
  uint32_t threadsPerThreadgroup[3];  ///< of this launch
  uint32_t dispatchThreadsPerThreadgroup[3];
  uint32_t threadsPerGrid[3];
  uint32_t isFlat;  ///< whether threads are launched in one row, since CUDA allows no more than 64 along z
  uint32_t number;  ///< of the dispatch in its command buffer, from 1
} SmGpuDispatch;

#ifndef __OPENCL_CPP_VERSION__
/// One dispatch, as the encoder recorded it.
typedef struct SmDispatch {
  const SmKernel *kernel;
  void *buffers[SM_MAX_BUFFERS];  ///< null: not bound
  uint32_t threadgroupLengths[SM_MAX_BUFFERS];  ///< bytes of [[threadgroup(n)]]
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

enum {
  SM_RUN_OK = 0,
  SM_RUN_TIMEOUT = 1,  ///< the kernel was stopped after `timeLimit`
  SM_RUN_DIVERGENT_BARRIER = 2,  ///< lanes of one SIMD group waited at different threadgroup barriers
  SM_RUN_FAULT = 3,  ///< the kernel did what the processor cannot do; `sm_pool_fault` says what
};

/// What a kernel did.
enum {
  SM_FAULT_UNMAPPED = 0,  ///< touched an address without memory
  SM_FAULT_PROTECTED = 1,  ///< touched memory that may not be touched so
  SM_FAULT_NO_ADDRESS = 2,  ///< touched an address that no memory can have, or that is not aligned as it must be
  SM_FAULT_STACK = 3,  ///< ran out of stack
  SM_FAULT_ARITHMETIC = 4,
  SM_FAULT_INSTRUCTION = 5,  ///< came to an instruction that is none, as compilers leave where no way leads
};

enum {
  SM_FAULT_UNKNOWN = 0,
  SM_FAULT_READ = 1,
  SM_FAULT_WRITE = 2,
  SM_FAULT_EXECUTE = 3,
};

typedef struct SmFault {
  uint32_t kind;  ///< SM_FAULT_*
  uint32_t access;  ///< SM_FAULT_*
  uint64_t address;  ///< where it is known; else 0
} SmFault;

/// Runs one dispatch to its end; the calling thread waits. Every threadgroup
/// runs once, in any order. `timeLimit` is in seconds; 0 means none. The calling
/// thread keeps those signals unblocked that end a kernel (SIGRTMAX - 3 and
/// SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP), and a stack to handle them on.
/// One dispatch at a time per pool.
int32_t sm_pool_run(SmPool *pool, const SmDispatch *dispatch, double timeLimit);

/// What ended the last dispatch, when it gave SM_RUN_FAULT.
SmFault sm_pool_fault(const SmPool *pool);

/// Puts the handlers that catch faults of kernels in front again, where the process has installed others since the
/// last call or the creation of a pool. What no kernel has raised goes on to those.
void sm_watch_faults(void);

/// Opens a pipe that no program inherits, not even one that another thread starts meanwhile: the end to read, the end
/// to write. 0, or -1 with `errno` set where the process may open no more files.
int32_t sm_open_pipe(int32_t ends[2]);

/// Lowers what a program that has just been started may take, and those that it starts: processor time in seconds, at
/// whose end it gets SIGXCPU, and address space in bytes.
void sm_limit_process(int32_t process, uint64_t seconds, uint64_t bytes);

/// Processors that the calling thread may run on; 0 where the system does not tell.
uint32_t sm_processor_count(void);

/// The highest level of the x86-64 psABI (1 to 4) that this processor has, with
/// the operating system keeping its registers. 0 on another architecture.
int32_t sm_x86_64_level(void);
#endif

#ifdef __cplusplus
}
#endif
