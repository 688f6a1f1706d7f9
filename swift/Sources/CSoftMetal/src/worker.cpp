#include "worker.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "switch.hpp"

namespace softmetal {
namespace {

constexpr size_t regionSize = size_t(1) << SM_REGION_SHIFT;
constexpr size_t stackSize = size_t(1) << SM_STACK_SHIFT;
constexpr size_t guardSize = 4096;

// The assembly in msl/softmetal_fibres knows these offsets.
static_assert(offsetof(SmWorker, yield) == 120);
static_assert(offsetof(SmSimdgroup, uniform) == 0);
static_assert(offsetof(SmSimdgroup, syncPoint) == 16);
static_assert(offsetof(SmSimdgroup, reason) == 24);
static_assert(sizeof(SmWorker) + SM_MAX_THREADGROUP_MEMORY * 2 < regionSize / 2);

/// The worker object of a region lies behind its SmWorker; the fibres' entry finds it from the stack pointer.
struct Region {
  SmWorker state;
  Worker *worker;
  alignas(64) uint8_t threadgroupMemory[SM_MAX_THREADGROUP_MEMORY];
};

Region *regionOf(const void *address) {
  return reinterpret_cast<Region *>(reinterpret_cast<uintptr_t>(address) & ~(regionSize - 1));
}

uint32_t laneCount(uint32_t threadCount, uint32_t simdgroup) {
  const uint32_t left = threadCount - simdgroup * SM_SIMD_WIDTH;
  return left < SM_SIMD_WIDTH ? left : SM_SIMD_WIDTH;
}

uint32_t simdgroupCount(uint32_t threadCount) { return (threadCount + SM_SIMD_WIDTH - 1) / SM_SIMD_WIDTH; }

}  // namespace

std::unique_ptr<Worker> Worker::create() {
  const size_t size = 2 * regionSize;
  void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  const uintptr_t base = (reinterpret_cast<uintptr_t>(mapping) + regionSize - 1) & ~(regionSize - 1);
  Region *region = reinterpret_cast<Region *>(base);
  std::unique_ptr<Worker> worker(new (std::nothrow) Worker(mapping, size, &region->state));
  if (!worker) {
    munmap(mapping, size);
    return nullptr;
  }
  worker->simdgroups_ = SimdgroupFibres::create();
  if (!worker->simdgroups_) return nullptr;
  worker->layRegion();
  return worker;
}

Worker::~Worker() { munmap(mapping_, mappingSize_); }

/// Sets what stays from one threadgroup to the next.
void Worker::layRegion() {
  Region *region = regionOf(state_);
  region->worker = this;
  region->state.yield = &Worker::yield;
  region->state.group.threadgroupMemory = region->threadgroupMemory;
  simdgroups_->attach(region->state.group);
}

/// New memory in place of what a kernel may have written over: stacks, states, guard pages. Where there is none to be
/// had, the old serves.
void Worker::renewRegion() {
  void *memory =
      mmap(state_, regionSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (memory != MAP_FAILED) stacksReady_ = 0;
  layRegion();
}

bool Worker::overflowsFibre(uintptr_t stackPointer, uintptr_t address) const {
  if (kernel_->execution == SM_EXECUTION_VECTORS) return simdgroups_->overflows(stackPointer, address);
  const uintptr_t block = stackPointer & ~(stackSize - 1);
  return regionOf(reinterpret_cast<void *>(stackPointer)) != regionOf(state_) ||
         (address >= block && address < block + guardSize);
}

/// The lowest page of a stack block is left inaccessible: an overflow stops there and not in a neighbour's stack.
/// Where the system has no more mappings to give, the stack serves without.
void Worker::prepareStacks(uint32_t threadCount) {
  char *stacks = reinterpret_cast<char *>(state_) + regionSize / 2;
  for (; stacksReady_ < threadCount; ++stacksReady_) mprotect(stacks + stacksReady_ * stackSize, guardSize, PROT_NONE);
}

void Worker::prepareFibres(uint32_t threadCount) {
  char *stacks = reinterpret_cast<char *>(state_) + regionSize / 2;
  for (uint32_t t = 0; t < threadCount; ++t) {
    char *top = stacks + (t + 1) * stackSize - (t % SM_SIMD_WIDTH) * SM_STACK_COLOUR;
    state_->stackPointers[t] = initialStack(top, &Worker::fibreMain);
    state_->divergent[t] = 0;
  }
  for (uint32_t g = 0; g < simdgroupCount(threadCount); ++g) {
    const uint32_t lanes = laneCount(threadCount, g);
    SmSimdgroup &group = state_->simdgroups[g];
    group = {};
    group.uniform = 1;
    group.last = g * SM_SIMD_WIDTH + lanes - 1;
    group.existing = lanes == SM_SIMD_WIDTH ? ~0u : (1u << lanes) - 1;
  }
  state_->uniform = 1;
}

/// Sets what changes from one threadgroup to the next: its place, and its size at the edges of the grid. `merged`
/// neighbours along `axis` count as one threadgroup.
void Worker::place(const SmDispatch &dispatch, const uint32_t position[3], int axis, uint64_t merged) {
  SmThreadgroup &group = state_->group;
  group.threadCount = 1;
  for (int i = 0; i < 3; ++i) {
    const uint32_t size = dispatch.threadsPerThreadgroup[i];
    const uint32_t left = dispatch.threadsPerGrid[i] - position[i] * size;
    const uint64_t wanted = i == axis ? size * merged : size;
    group.position[i] = position[i];
    group.threadsPerThreadgroup[i] = left < wanted ? left : static_cast<uint32_t>(wanted);
    group.threadCount *= group.threadsPerThreadgroup[i];
  }
}

int32_t Worker::run(const SmDispatch &dispatch, const uint32_t *threadgroupOffsets, uint64_t begin, uint64_t end,
                    const std::atomic<int32_t> &outcome) {
  SmThreadgroup &group = state_->group;
  group.buffers = dispatch.buffers;
  group.threadgroupOffsets = threadgroupOffsets;
  for (int i = 0; i < 3; ++i) {
    group.threadgroups[i] = dispatch.threadgroups[i];
    group.dispatchThreadsPerThreadgroup[i] = dispatch.threadsPerThreadgroup[i];
    group.threadsPerGrid[i] = dispatch.threadsPerGrid[i];
  }
  kernel_ = dispatch.kernel;
  const uint64_t width = dispatch.threadgroups[0], height = dispatch.threadgroups[1];
  uint32_t position[3] = {static_cast<uint32_t>(begin % width), static_cast<uint32_t>(begin / width % height),
                          static_cast<uint32_t>(begin / width / height)};
  barrierDiverged_ = false;
  outcome_ = &outcome;
  // A signal handler comes back here.
  switch (sigsetjmp(escape_, 0)) {
    case SM_RUN_OK:
      break;
    case SM_RUN_TIMEOUT:
      return SM_RUN_TIMEOUT;
    default:
      renewRegion();
      return SM_RUN_FAULT;
  }
  isInKernel_.store(true, std::memory_order_relaxed);
  // Along the first axis with more than one, threadgroups come one after another.
  const int axis = width > 1 ? 0 : height > 1 ? 1 : 2;
  uint64_t merged = 1;
  for (uint64_t i = begin; i < end && outcome.load(std::memory_order_relaxed) == SM_RUN_OK; i += merged) {
    if (kernel_->seesGridOnly) merged = std::min<uint64_t>(end - i, dispatch.threadgroups[axis] - position[axis]);
    place(dispatch, position, axis, merged);
    if (kernel_->execution == SM_EXECUTION_LOOP) {
      kernel_->run(&group);
    } else if (kernel_->execution == SM_EXECUTION_VECTORS) {
      barrierDiverged_ = !simdgroups_->run(*kernel_, group);
      if (barrierDiverged_) break;
    } else {
      prepareStacks(group.threadCount);
      prepareFibres(group.threadCount);
      softmetal_switch(&mainStackPointer_, state_->stackPointers[0]);
      if (barrierDiverged_) break;
    }
    position[axis] += static_cast<uint32_t>(merged) - 1;
    for (int k = 0; k < 3 && ++position[k] == dispatch.threadgroups[k]; ++k) position[k] = 0;
  }
  isInKernel_.store(false, std::memory_order_relaxed);
  return barrierDiverged_ ? SM_RUN_DIVERGENT_BARRIER : SM_RUN_OK;
}

/// Neither called nor returned from, which a sanitizer that follows calls and returns must not see.
[[clang::disable_sanitizer_instrumentation, clang::no_sanitize("undefined")]] void Worker::fibreMain() {
  void *here = __builtin_frame_address(0);
  Region *region = regionOf(here);
  const uint64_t thread = (reinterpret_cast<uintptr_t>(here) >> SM_STACK_SHIFT) & (SM_MAX_THREADS - 1);
  region->worker->kernel_->run(&region->state.group);
  softmetal_jump(yield(&region->state, thread, SM_YIELD_EXIT, nullptr, nullptr));
}

void *Worker::yield(SmWorker *state, uint64_t thread, uint64_t reason, void *stackPointer, const void *syncPoint) {
  Worker *worker = regionOf(state)->worker;
  state->stackPointers[thread] = stackPointer;
  worker->stop(static_cast<uint32_t>(thread), reason, syncPoint);
  return worker->next(static_cast<uint32_t>(thread) / SM_SIMD_WIDTH);
}

void Worker::stop(uint32_t thread, uint64_t reason, const void *syncPoint) {
  const uint32_t simdgroup = thread / SM_SIMD_WIDTH;
  if (state_->simdgroups[simdgroup].uniform) materialise(simdgroup, thread);
  // Groups before this one stand at the barrier, those after it have still to run.
  if (state_->uniform) {
    state_->uniform = 0;
    for (uint32_t g = 0; g < simdgroup; ++g) {
      state_->simdgroups[g].reason = SM_YIELD_THREADGROUP;
      materialise(g, state_->simdgroups[g].last + 1);
    }
  }
  threadStates_[thread] = reason == SM_YIELD_EXIT          ? ThreadState::ended
                          : reason == SM_YIELD_THREADGROUP ? ThreadState::atThreadgroup
                                                           : ThreadState::atSimdgroup;
  runnable_[simdgroup] &= ~(1u << thread % SM_SIMD_WIDTH);
  syncPoints_[thread] = syncPoint;
}

/// Writes down the states that are implied while a SIMD group is uniform: lanes before `running` wait.
void Worker::materialise(uint32_t simdgroup, uint32_t running) {
  SmSimdgroup &group = state_->simdgroups[simdgroup];
  // Lanes from `running` on may still read what the last synchronisation exchanged: write elsewhere from now on.
  if (running == simdgroup * SM_SIMD_WIDTH) ++group.round;
  const ThreadState waiting =
      group.reason == SM_YIELD_THREADGROUP ? ThreadState::atThreadgroup : ThreadState::atSimdgroup;
  for (uint32_t t = simdgroup * SM_SIMD_WIDTH; t <= group.last; ++t) {
    threadStates_[t] = waiting;
    syncPoints_[t] = group.syncPoint;
  }
  const uint32_t done = running - simdgroup * SM_SIMD_WIDTH;
  runnable_[simdgroup] = done < SM_SIMD_WIDTH ? group.existing & ~0u << done : 0;
  group.uniform = 0;
}

/// The stack pointer to continue with: a lane of this SIMD group if any can run, else the next group's.
void *Worker::next(uint32_t simdgroup) {
  const uint32_t groups = simdgroupCount(state_->group.threadCount);
  do {
    for (uint32_t i = 0; i < groups; ++i) {
      const uint32_t g = (simdgroup + i) % groups;
      const SmSimdgroup &group = state_->simdgroups[g];
      const uint32_t first = g * SM_SIMD_WIDTH;
      do {
        if (group.uniform) return state_->stackPointers[first];
        if (runnable_[g]) return state_->stackPointers[first + __builtin_ctz(runnable_[g])];
      } while (releaseSimdgroup(g));
    }
    simdgroup = 0;
  } while (releaseThreadgroup());
  return mainStackPointer_;
}

/// Releases the lanes that wait at the synchronisation point that comes first in the code: the others wait behind it,
/// where the paths join again.
bool Worker::releaseSimdgroup(uint32_t simdgroup) {
  SmSimdgroup &group = state_->simdgroups[simdgroup];
  const uint32_t first = simdgroup * SM_SIMD_WIDTH;
  const void *earliest = nullptr;
  for (uint32_t t = first; t <= group.last; ++t)
    if (threadStates_[t] == ThreadState::atSimdgroup && (!earliest || syncPoints_[t] < earliest))
      earliest = syncPoints_[t];
  if (!earliest) return false;
  uint32_t active = 0;
  for (uint32_t t = first; t <= group.last; ++t) {
    if (threadStates_[t] != ThreadState::atSimdgroup || syncPoints_[t] != earliest) continue;
    state_->divergent[t] = 1;
    active |= 1u << (t - first);
  }
  std::memcpy(state_->snapshot[simdgroup], state_->exchange[simdgroup][group.round & 1], SM_EXCHANGE_BYTES);
  group.active = active;
  runnable_[simdgroup] = active;
  if (active == group.existing) group.uniform = 1;
  return true;
}

/// Releases the threads that wait at a barrier, unless the lanes of a SIMD group wait at different ones. A GPU
/// counts whole SIMD groups at a barrier, so each of these may have come to one of its own.
bool Worker::releaseThreadgroup() {
  const uint32_t groups = simdgroupCount(state_->group.threadCount);
  bool released = false, allUniform = true;
  for (uint32_t g = 0; g < groups; ++g) {
    SmSimdgroup &group = state_->simdgroups[g];
    const uint32_t first = g * SM_SIMD_WIDTH;
    uint32_t waiting = 0;
    const void *barrier = nullptr;
    for (uint32_t t = first; t <= group.last; ++t) {
      if (threadStates_[t] == ThreadState::ended) continue;
      if (barrier && syncPoints_[t] != barrier) barrierDiverged_ = true;
      barrier = syncPoints_[t];
      waiting |= 1u << (t - first);
    }
    runnable_[g] = waiting;
    group.uniform = waiting == group.existing;
    allUniform = allUniform && group.uniform;
    released = released || waiting;
  }
  state_->uniform = allUniform && released;
  return released && !barrierDiverged_;
}

}  // namespace softmetal
