/// How long kernels take, as a guess at the next dispatch: whether helpers are worth their cost.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "softmetal.h"

namespace softmetal {

/// Remembers the time of a threadgroup for the kernels that ran last. One that is forgotten, or that does more work
/// than before, costs a wrong guess and no wrong result.
class Pace {
 public:
  using Seconds = std::chrono::duration<double>;

  /// The time of a dispatch on one thread; infinite when nothing is known.
  Seconds expected(const SmKernel *kernel, uint64_t threadgroups) const {
    const Entry &entry = entries_[slot(kernel)];
    if (entry.kernel != kernel) return Seconds(std::numeric_limits<double>::infinity());
    return entry.perThreadgroup * static_cast<double>(threadgroups);
  }

  /// `threadgroups` of the kernel took `time` on one thread. The guess grows to twice of what it was at most: the
  /// thread may have been off its processor meanwhile.
  void note(const SmKernel *kernel, uint64_t threadgroups, Seconds time) {
    if (threadgroups == 0) return;
    Entry &entry = entries_[slot(kernel)];
    const Seconds each = time / static_cast<double>(threadgroups);
    entry.perThreadgroup = entry.kernel == kernel ? std::min(each, 2 * entry.perThreadgroup) : each;
    entry.kernel = kernel;
  }

 private:
  struct Entry {
    const SmKernel *kernel = nullptr;
    Seconds perThreadgroup{};
  };

  static constexpr unsigned slotBits = 10;

  static uint64_t slot(const SmKernel *kernel) {
    return reinterpret_cast<uintptr_t>(kernel) * 0x9E3779B97F4A7C15u >> (64 - slotBits);
  }

  Entry entries_[1 << slotBits];
};

}  // namespace softmetal
