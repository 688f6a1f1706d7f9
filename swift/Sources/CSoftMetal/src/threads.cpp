#include "threads.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "switch.hpp"

namespace softmetal {
namespace {

constexpr size_t regionSize = size_t(1) << SM_REGION_SHIFT;
constexpr size_t stackSize = size_t(1) << SM_STACK_SHIFT;
constexpr size_t guardSize = 4096;

uintptr_t regionOf(uintptr_t address) { return address & ~(regionSize - 1); }

}  // namespace

void Threads::attach() {
  state_->wait = &Threads::wait;
  state_->threads = this;
  guarded_ = 0;
}

bool Threads::run(const SmKernel &kernel) {
  kernel_ = &kernel;
  const uint32_t count = begin();
  for (;;) {
    for (uint32_t thread = 0; thread < count; ++thread) {
      if (states_[thread] != State::runnable) continue;
      running_ = thread;
      softmetal_switch(&main_, stackPointers_[thread]);
    }
    bool released = false;
    for (uint32_t first = 0; first < count; first += SM_SIMD_WIDTH)
      released |= releaseSimdgroup(first, std::min<uint32_t>(count, first + SM_SIMD_WIDTH));
    if (!released && !releaseThreadgroup(count)) return !diverged_;
  }
}

bool Threads::overflows(uintptr_t stackPointer, uintptr_t address) const {
  const uintptr_t block = stackPointer & ~(stackSize - 1);
  return regionOf(stackPointer) != reinterpret_cast<uintptr_t>(state_) ||
         (address >= block && address < block + guardSize);
}

/// Prepares a stack for each thread; gives their number. The lowest page of a stack is left inaccessible: an overflow
/// stops there and not in a neighbour's stack. Where the system has no more mappings to give, the stack serves without.
uint32_t Threads::begin() {
  const uint32_t count = state_->group.threadCount;
  char *const stacks = reinterpret_cast<char *>(state_) + regionSize / 2;
  for (; guarded_ < count; ++guarded_) mprotect(stacks + guarded_ * stackSize, guardSize, PROT_NONE);
  for (uint32_t thread = 0; thread < count; ++thread) {
    stackPointers_[thread] = initialStack(stacks + (thread + 1) * stackSize, &Threads::threadMain);
    states_[thread] = State::runnable;
  }
  diverged_ = false;
  return count;
}

/// Neither called nor returned from, which a sanitizer that follows calls and returns must not see.
[[clang::disable_sanitizer_instrumentation, clang::no_sanitize("undefined")]] void Threads::threadMain() {
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  auto *state = reinterpret_cast<SmWorker *>(regionOf(here));
  auto *self = static_cast<Threads *>(state->threads);
  self->kernel_->run(&state->group);
  self->states_[self->running_] = State::ended;
  softmetal_jump(self->main_);
}

void Threads::wait(SmWorker *state, uint64_t thread, uint64_t whom, const void *place) {
  auto *self = static_cast<Threads *>(state->threads);
  self->states_[thread] = whom == SM_WAIT_THREADGROUP ? State::atThreadgroup : State::atSimdgroup;
  self->places_[thread] = place;
  softmetal_switch(&self->stackPointers_[thread], self->main_);
}

/// Releases the lanes that wait at the place that comes first in the code: the others wait behind it, where the paths
/// join again.
bool Threads::releaseSimdgroup(uint32_t first, uint32_t end) {
  const void *earliest = nullptr;
  for (uint32_t t = first; t < end; ++t)
    if (states_[t] == State::atSimdgroup && (!earliest || places_[t] < earliest)) earliest = places_[t];
  if (!earliest) return false;
  uint32_t active = 0;
  for (uint32_t t = first; t < end; ++t) {
    if (states_[t] != State::atSimdgroup || places_[t] != earliest) continue;
    states_[t] = State::runnable;
    active |= 1u << (t - first);
  }
  std::memcpy(state_->exchanged[first], state_->given[first], SM_SIMD_WIDTH * SM_MAX_VALUE_BYTES);
  state_->active[first / SM_SIMD_WIDTH] = active;
  return true;
}

/// Releases the threads that wait at a barrier, unless the lanes of a SIMD group wait at different ones. A GPU
/// counts whole SIMD groups at a barrier, so each of these may have come to one of its own.
bool Threads::releaseThreadgroup(uint32_t count) {
  bool released = false;
  const void *barriers[SM_MAX_SIMDGROUPS] = {};
  for (uint32_t t = 0; t < count; ++t) {
    if (states_[t] == State::ended) continue;
    const void *&barrier = barriers[t / SM_SIMD_WIDTH];
    diverged_ |= barrier && places_[t] != barrier;
    barrier = places_[t];
    states_[t] = State::runnable;
    released = true;
  }
  return released && !diverged_;
}

}  // namespace softmetal
