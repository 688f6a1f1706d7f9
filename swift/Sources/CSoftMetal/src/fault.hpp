/// What a kernel did that made the processor raise a signal, as the handler is told.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "softmetal.h"

namespace softmetal {

class Worker;

/// The stack of a thread, addresses from `low` to below `high`; all 0 where it is not known.
struct ThreadStack {
  uintptr_t low, high;
  size_t guard;  ///< bytes at its low end that nobody may touch; some C libraries count them as part of it, some do not

  /// Whether it has run out, for a stack pointer and an access at fault. The first thread's stack, which grows, ends a
  /// few pages from where the C library says.
  bool overflows(uintptr_t pointer, uintptr_t address) const {
    constexpr uintptr_t tolerance = 65536;
    if (high == 0) return false;
    return pointer < low || pointer >= high || (address >= low - guard - tolerance && address < low + guard);
  }
};

/// Async-signal-safe. `stack` is that of the thread, which loops run on.
SmFault describeFault(int signal, const siginfo_t *info, const void *context, const Worker &worker,
                      const ThreadStack &stack);

}  // namespace softmetal
