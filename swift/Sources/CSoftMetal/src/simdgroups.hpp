/// The SIMD groups of a threadgroup where each is one flow of control: one after
/// another on one stack, and as fibres from the first barrier on.
#pragma once

#include <cstddef>
#include <memory>

#include "softmetal_worker.h"

namespace softmetal {

/// Not movable: fibres find it by address.
class SimdgroupFibres {
 public:
  /// Null when the memory cannot be had.
  static std::unique_ptr<SimdgroupFibres> create();
  ~SimdgroupFibres();
  SimdgroupFibres(const SimdgroupFibres &) = delete;
  SimdgroupFibres &operator=(const SimdgroupFibres &) = delete;

  /// Makes `group` one whose barriers come here.
  void attach(SmThreadgroup &group);
  /// Runs all SIMD groups. False where lanes of one of them came to different barriers.
  bool run(const SmKernel &kernel, const SmThreadgroup &group);
  /// Whether a stack has run out, for a stack pointer and an access at fault.
  bool overflows(uintptr_t stackPointer, uintptr_t address) const;

 private:
  SimdgroupFibres(void *mapping, size_t size, char *stacks) noexcept
      : mapping_(mapping), mappingSize_(size), stacks_(stacks) {}

  static void wait(const SmThreadgroup *group);
  static void diverged(const SmThreadgroup *group);
  static void fibreMain();

  void begin(uint32_t fibre);

  void *mapping_;
  size_t mappingSize_;
  char *stacks_;
  const SmKernel *kernel_ = nullptr;
  const SmThreadgroup *group_ = nullptr;
  uint32_t begun_ = 0;    ///< SIMD groups begun
  uint32_t count_ = 0;    ///< SIMD groups
  uint32_t fibres_ = 0;   ///< stacks in use
  uint32_t running_ = 0;  ///< the fibre that runs
  bool diverged_ = false;
  void *main_ = nullptr;  ///< stack pointer of `run`
  void *stackPointers_[SM_MAX_SIMDGROUPS] = {};
  /// The fibres that have not ended, as a ring.
  uint32_t next_[SM_MAX_SIMDGROUPS] = {}, previous_[SM_MAX_SIMDGROUPS] = {};
};

}  // namespace softmetal
