/// Changing stacks. A waiting stack begins with a saved frame pointer
/// and the address to continue at.
#pragma once

namespace softmetal {

/// A stack whose first resumption enters `entry`, which must not return.
/// `top` is a multiple of 64.
inline void *initialStack(void *top, void (*entry)()) {
  void **words = static_cast<void **>(top);
#if defined(__x86_64__)
  // A function begins with the stack pointer 8 below a multiple of 16, where a call leaves it.
  words -= 1;
#endif
  words[-1] = reinterpret_cast<void *>(entry);
  words[-2] = nullptr;
  return words - 2;
}

extern "C" {
/// Saves this stack in `*save` and continues with `resume`; returns when `*save` is resumed.
void softmetal_switch(void **save, void *resume);
/// Continues with `resume` for good.
[[noreturn]] void softmetal_jump(void *resume);
}

}  // namespace softmetal
