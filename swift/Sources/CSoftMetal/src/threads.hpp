/// The threads of a threadgroup where each is a flow of control: one after
/// another runs up to where it waits for others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softmetal_worker.h"

namespace softmetal {

/// Not movable: threads find it by address.
class Threads {
 public:
  /// The stacks are the upper half of the region that begins with `state`.
  explicit Threads(SmWorker *state) noexcept : state_(state) {}
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

  /// Makes `state` one whose threads wait here, after new memory for it and its stacks too.
  void attach();
  /// Runs all threads of the threadgroup. False where lanes of a SIMD group came to different barriers.
  bool run(const SmKernel &kernel);
  /// Whether a stack has run out, for a stack pointer and an access at fault.
  bool overflows(uintptr_t stackPointer, uintptr_t address) const;

 private:
  enum class State : uint8_t { runnable, atSimdgroup, atThreadgroup, ended };

  static void threadMain();
  static void wait(SmWorker *state, uint64_t thread, uint64_t whom, const void *place);

  uint32_t begin();
  bool releaseSimdgroup(uint32_t first, uint32_t end);
  bool releaseThreadgroup(uint32_t count);

  SmWorker *state_;
  const SmKernel *kernel_ = nullptr;
  uint32_t guarded_ = 0;  ///< stacks with a guard page
  bool diverged_ = false;
  void *main_ = nullptr;  ///< stack pointer of `run`
  uint32_t running_ = 0;
  void *stackPointers_[SM_MAX_THREADS] = {};
  State states_[SM_MAX_THREADS] = {};
  const void *places_[SM_MAX_THREADS] = {};  ///< where the waiting ones do
};

}  // namespace softmetal
