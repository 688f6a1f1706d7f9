/// The state of a worker thread while it runs one threadgroup, as the executor
/// (C++) and compiled shaders see it.
///
/// Every worker owns a region of virtual memory aligned to its size. The lower
/// half holds `SmWorker`; the upper half holds one stack per thread of the
/// threadgroup, each in a block of its own. A running fibre therefore finds
/// its worker, its thread index and its lane from the stack pointer alone,
/// with two instructions and no memory access.
#pragma once

#include "softmetal.h"

#define SM_CACHE_ALIGNED __attribute__((aligned(64)))

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SM_STACK_SHIFT = 16,  ///< a stack block is 64 KiB
  SM_REGION_SHIFT = 27, ///< a region is 128 MiB: 1,024 stacks are its upper half
  /// Stacks start this many bytes apart within their blocks: with equal offsets
  /// the same variable of 32 lanes would fall into one cache set.
  SM_STACK_COLOUR = 320,
  SM_MAX_SIMDGROUPS = SM_MAX_THREADS / SM_SIMD_WIDTH,
  SM_MAX_VALUE_BYTES = 64,  ///< largest value a lane can exchange
  SM_EXCHANGE_BYTES = 2 * SM_MAX_VALUE_BYTES * SM_SIMD_WIDTH,
};

/// Why a fibre gives up control.
enum {
  SM_YIELD_SIMDGROUP = 0,
  SM_YIELD_THREADGROUP = 1,
  SM_YIELD_EXIT = 2,
};

/// A SIMD group at run time. The assembly of `sm_synchronise` knows the offsets.
///
/// While `uniform` is 1, lanes run in order from one synchronisation to the next: those
/// before the running one wait, those after it have still to run. While it is
/// 0, the executor keeps a state for every lane.
typedef struct SmSimdgroup {
  uint32_t uniform;  ///< 1: every lane takes part in each synchronisation, in order
  uint32_t last;     ///< thread index of the last lane
  uint32_t round;    ///< uniform synchronisations so far; its parity selects the exchange buffer
  uint32_t active;   ///< lanes that the last divergent synchronisation released, one bit a lane
  const void *syncPoint;  ///< code address where the lanes before the running one wait
  uint64_t reason;           ///< why they wait: SM_YIELD_*
  uint32_t existing;         ///< lanes that exist, one bit a lane
  uint32_t reserved;
} SmSimdgroup;

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
  /// 1 while all SIMD groups are uniform and none has ended.
  uint32_t uniform;
  uint32_t reserved;
  /// Records why `thread` stops at `syncPoint`, saves its stack pointer and
  /// returns the stack pointer to continue with.
  SM_FUNCTION(void *, yield, struct SmWorker *worker, uint64_t thread, uint64_t reason, void *stackPointer,
              const void *syncPoint);
  SM_CACHE_ALIGNED SmSimdgroup simdgroups[SM_MAX_SIMDGROUPS];
  SM_CACHE_ALIGNED void *stackPointers[SM_MAX_THREADS];
  /// 1 when a divergent synchronisation released the thread and it has not looked yet.
  SM_CACHE_ALIGNED uint32_t divergent[SM_MAX_THREADS];
  /// Values on their way between lanes. One of `size` bytes (a power of two) of
  /// lane l lies at size * (32 + l), so values of different sizes never overlap.
  SM_CACHE_ALIGNED uint8_t exchange[SM_MAX_SIMDGROUPS][2][SM_EXCHANGE_BYTES];
  /// The exchange buffer as it was at the last divergent synchronisation.
  SM_CACHE_ALIGNED uint8_t snapshot[SM_MAX_SIMDGROUPS][SM_EXCHANGE_BYTES];
} SmWorker;

#ifdef __cplusplus
}
#endif
