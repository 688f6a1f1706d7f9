#include "worker.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace softmetal {
namespace {

constexpr size_t regionSize = size_t(1) << SM_REGION_SHIFT;

/// Threadgroup memory lies behind the state that kernels know.
struct Region {
  SmWorker state;
  alignas(64) uint8_t threadgroupMemory[SM_MAX_THREADGROUP_MEMORY];
};
static_assert(sizeof(Region) < regionSize / 2, "stacks are the other half");

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
  threads_.attach();
  state_->group.threadgroupMemory = reinterpret_cast<Region *>(state_)->threadgroupMemory;
  simdgroups_->attach(state_->group);
}

/// New memory in place of what a kernel may have written over: stacks, states, guard pages. Where there is none to be
/// had, the old serves.
void Worker::renewRegion() {
  mmap(state_, regionSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  layRegion();
}

bool Worker::overflows(uintptr_t stackPointer, uintptr_t address) const {
  return kernel_->execution == SM_EXECUTION_VECTORS ? simdgroups_->overflows(stackPointer, address)
                                                    : threads_.overflows(stackPointer, address);
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
  bool isDivergent = false;
  for (uint64_t i = begin; i < end && outcome.load(std::memory_order_relaxed) == SM_RUN_OK; i += merged) {
    if (kernel_->seesGridOnly) merged = std::min<uint64_t>(end - i, dispatch.threadgroups[axis] - position[axis]);
    place(dispatch, position, axis, merged);
    isDivergent = !runThreadgroup();
    if (isDivergent) break;
    position[axis] += static_cast<uint32_t>(merged) - 1;
    for (int k = 0; k < 3 && ++position[k] == dispatch.threadgroups[k]; ++k) position[k] = 0;
  }
  isInKernel_.store(false, std::memory_order_relaxed);
  return isDivergent ? SM_RUN_DIVERGENT_BARRIER : SM_RUN_OK;
}

/// False where lanes of a SIMD group came to different barriers.
bool Worker::runThreadgroup() {
  switch (kernel_->execution) {
    case SM_EXECUTION_LOOP:
      kernel_->run(&state_->group);
      return true;
    case SM_EXECUTION_VECTORS:
      return simdgroups_->run(*kernel_, state_->group);
    default:
      return threads_.run(*kernel_);
  }
}

}  // namespace softmetal
