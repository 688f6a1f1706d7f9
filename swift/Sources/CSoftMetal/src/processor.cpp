#include "softmetal.h"

#include <sched.h>

#include <cerrno>

uint32_t sm_processor_count() {
  // The system wants room for all the processors that it could have.
  for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 2) {
    cpu_set_t *set = CPU_ALLOC(most);
    if (!set) return 0;
    const size_t size = CPU_ALLOC_SIZE(most);
    const bool isRead = sched_getaffinity(0, size, set) == 0;
    const bool isTooSmall = !isRead && errno == EINVAL;
    const int count = isRead ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (!isTooSmall) return static_cast<uint32_t>(count);
  }
  return 0;
}

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

/// Zeros where the processor has no such leaf.
Registers leaf(unsigned number, unsigned sub = 0) {
  Registers r;
  __get_cpuid_count(number, sub, &r.a, &r.b, &r.c, &r.d);
  return r;
}

/// The sets of registers that the operating system saves.
unsigned savedState() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

}  // namespace

// The features of each level, as the psABI lists them.
int32_t sm_x86_64_level() {
  const Registers basic = leaf(1), structured = leaf(7), extended = leaf(0x80000001);
  constexpr unsigned lahf = 1u << 0;
  if (!has(basic.c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_CMPXCHG16B | bit_POPCNT) ||
      !has(extended.c, lahf))
    return 1;
  constexpr unsigned vectorState = 0x6, maskState = 0xE6;
  if (!has(basic.c, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE) || !has(savedState(), vectorState) ||
      !has(structured.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(extended.c, bit_LZCNT))
    return 2;
  if (!has(structured.b, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) ||
      !has(savedState(), maskState))
    return 3;
  return 4;
}

#else

int32_t sm_x86_64_level() { return 0; }

#endif
