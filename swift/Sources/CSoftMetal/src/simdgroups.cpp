#include "simdgroups.hpp"

#include <sys/mman.h>

#include <new>

#include "switch.hpp"

namespace softmetal {
namespace {

constexpr size_t stackSize = size_t(4) << 20;  ///< holds the private memory of 32 threads
constexpr size_t guardSize = 4096;
constexpr size_t headSize = 64;  ///< at the end of a stack: whose it is
/// Stacks begin this many bytes apart within their blocks: with equal offsets the same variable of all SIMD groups
/// would fall into one cache set.
constexpr size_t colour = 13 * 64;

}  // namespace

std::unique_ptr<SimdgroupFibres> SimdgroupFibres::create() {
  const size_t size = (SM_MAX_SIMDGROUPS + 1) * stackSize;
  void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  const uintptr_t base = (reinterpret_cast<uintptr_t>(mapping) + stackSize - 1) & ~(stackSize - 1);
  std::unique_ptr<SimdgroupFibres> result(new (std::nothrow)
                                              SimdgroupFibres(mapping, size, reinterpret_cast<char *>(base)));
  if (!result) munmap(mapping, size);
  return result;
}

SimdgroupFibres::~SimdgroupFibres() { munmap(mapping_, mappingSize_); }

void SimdgroupFibres::attach(SmThreadgroup &group) {
  group.wait = &SimdgroupFibres::wait;
  group.diverged = &SimdgroupFibres::diverged;
  group.executor = this;
}

bool SimdgroupFibres::run(const SmKernel &kernel, const SmThreadgroup &group) {
  kernel_ = &kernel;
  group_ = &group;
  begun_ = 0;
  count_ = (group.threadCount + SM_SIMD_WIDTH - 1) / SM_SIMD_WIDTH;
  fibres_ = 0;
  diverged_ = false;
  begin(0);
  next_[0] = previous_[0] = 0;
  softmetal_switch(&main_, stackPointers_[0]);
  return !diverged_;
}

bool SimdgroupFibres::overflows(uintptr_t stackPointer, uintptr_t address) const {
  const uintptr_t first = reinterpret_cast<uintptr_t>(stacks_), block = stackPointer & ~(stackSize - 1);
  return block < first || block >= first + SM_MAX_SIMDGROUPS * stackSize ||
         (address >= block && address < block + guardSize);
}

/// Prepares the next stack. An overflow stops at its lowest page, where the system grants that.
void SimdgroupFibres::begin(uint32_t fibre) {
  char *stack = stacks_ + fibre * stackSize, *top = stack + stackSize - headSize;
  auto **owner = reinterpret_cast<SimdgroupFibres **>(top);
  if (*owner != this) mprotect(stack, guardSize, PROT_NONE);
  *owner = this;
  stackPointers_[fibre] = initialStack(top - fibre * colour, &SimdgroupFibres::fibreMain);
  running_ = fibre;
  fibres_ = fibre + 1;
}

/// Neither called nor returned from, which a sanitizer that follows calls and returns must not see.
[[clang::disable_sanitizer_instrumentation, clang::no_sanitize("undefined")]] void SimdgroupFibres::fibreMain() {
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t end = (here | (stackSize - 1)) + 1;
  SimdgroupFibres *self = *reinterpret_cast<SimdgroupFibres **>(end - headSize);
  while (self->begun_ < self->count_) self->kernel_->runSimdgroup(self->group_, self->begun_++);
  const uint32_t fibre = self->running_, next = self->next_[fibre];
  if (next == fibre) softmetal_jump(self->main_);
  self->next_[self->previous_[fibre]] = next;
  self->previous_[next] = self->previous_[fibre];
  self->running_ = next;
  softmetal_jump(self->stackPointers_[next]);
}

/// Every SIMD group runs up to its next barrier in turn: when it is the first one's turn again, all have come there or
/// have ended.
void SimdgroupFibres::wait(const SmThreadgroup *group) {
  auto *self = static_cast<SimdgroupFibres *>(group->executor);
  const uint32_t fibre = self->running_;
  if (self->begun_ < self->count_) {
    const uint32_t added = self->fibres_;
    self->begin(added);
    self->next_[added] = self->next_[fibre];
    self->previous_[added] = fibre;
    self->previous_[self->next_[fibre]] = added;
    self->next_[fibre] = added;
  } else {
    self->running_ = self->next_[fibre];
    if (self->running_ == fibre) return;
  }
  softmetal_switch(&self->stackPointers_[fibre], self->stackPointers_[self->running_]);
}

void SimdgroupFibres::diverged(const SmThreadgroup *group) {
  auto *self = static_cast<SimdgroupFibres *>(group->executor);
  self->diverged_ = true;
  softmetal_jump(self->main_);
}

}  // namespace softmetal
