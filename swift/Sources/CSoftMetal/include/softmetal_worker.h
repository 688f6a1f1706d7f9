/// The state of a worker thread while it runs one threadgroup, as the executors
/// (C++) and compiled shaders see it.
///
/// Every worker owns a region of virtual memory aligned to its size. The lower
/// half holds `SmWorker`; the upper half holds one stack per thread of the
/// threadgroup, each in a block of its own. Where every thread is a flow of
/// control, it finds its worker and its index from the stack pointer alone.
#pragma once

#include "softmetal.h"

#define SM_CACHE_ALIGNED __attribute__((aligned(64)))

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SM_STACK_SHIFT = 16,  ///< a stack block is 64 KiB
  SM_REGION_SHIFT = 27, ///< a region is 128 MiB: 1,024 stacks are its upper half
  SM_MAX_SIMDGROUPS = SM_MAX_THREADS / SM_SIMD_WIDTH,
  SM_MAX_VALUE_BYTES = 64,  ///< largest value a lane can exchange
};

/// Whom a thread waits for.
enum {
  SM_WAIT_SIMDGROUP = 0,
  SM_WAIT_THREADGROUP = 1,
};

/// The running threadgroup.
typedef struct SmThreadgroup {
  void *const *buffers;
  const uint32_t *threadgroupOffsets;  ///< of [[threadgroup(n)]] in threadgroupMemory
  uint8_t *threadgroupMemory;
  uint32_t position[3];                    ///< in the grid of threadgroups
  uint32_t threadgroups[3];
  uint32_t threadsPerThreadgroup[3];       ///< of this threadgroup; fewer at the edge
  uint32_t dispatchThreadsPerThreadgroup[3];
  uint32_t threadsPerGrid[3];
  uint32_t threadCount;
  /// VECTORS: what a SIMD group calls at a barrier, and where its lanes are at different ones; the latter does not
  /// return.
  SM_FUNCTION(void, wait, const struct SmThreadgroup *group);
  SM_FUNCTION(void, diverged, const struct SmThreadgroup *group);
  void *executor;  ///< whose functions these are
} SmThreadgroup;

/// A worker. Arrays of SM_MAX_THREADS are indexed by thread.
typedef struct SmWorker {
  SmThreadgroup group;
  /// THREADS: stops `thread` at `place`, an address in its code, until those whom it waits for have come.
  SM_FUNCTION(void, wait, struct SmWorker *worker, uint64_t thread, uint64_t whom, const void *place);
  void *threads;  ///< whose function that is
  /// Lanes that the last meeting of each SIMD group had, one bit a lane.
  uint32_t active[SM_MAX_SIMDGROUPS];
  /// The value with which a thread comes to a meeting, and those with which its lanes came to the last.
  SM_CACHE_ALIGNED uint8_t given[SM_MAX_THREADS][SM_MAX_VALUE_BYTES];
  SM_CACHE_ALIGNED uint8_t exchanged[SM_MAX_THREADS][SM_MAX_VALUE_BYTES];
} SmWorker;

#ifdef __cplusplus
}
#endif
