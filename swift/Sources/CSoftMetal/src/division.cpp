#include "division.hpp"

#include <ucontext.h>

#include <cstdint>

namespace softmetal {

#if defined(__x86_64__)

namespace {

/// A DIV or IDIV: prefixes, opcode F6 (bytes) or F7, the byte ModRM with 6 or 7 in its middle, an address.
struct Division {
  unsigned length = 0;  ///< bytes; 0: it is no division
  unsigned width = 0;   ///< of quotient and remainder, bits
  bool isSigned = false;
};

Division decode(const uint8_t *code) {
  const uint8_t *at = code;
  bool isHalfWidth = false, isWide = false;
  for (;; ++at) {
    if (*at == 0x66)
      isHalfWidth = true;
    else if (*at != 0x67 && (*at & 0xE7) != 0x26 && (*at & 0xFE) != 0x64 && (*at & 0xFE) != 0xF2)
      break;  // neither address size, segment nor repeat
  }
  if ((*at & 0xF0) == 0x40) isWide = *at++ & 0x08;  // REX
  const uint8_t opcode = *at++;
  if (opcode != 0xF6 && opcode != 0xF7) return {};
  const uint8_t modRM = *at++;
  const unsigned mode = modRM >> 6, operation = modRM >> 3 & 7, base = modRM & 7;
  if (operation < 6) return {};
  if (mode != 3) {
    const bool hasIndex = base == 4;
    const bool isAbsolute = mode == 0 && (hasIndex ? (*at & 7) == 5 : base == 5);
    at += hasIndex;
    at += mode == 1 ? 1 : mode == 2 || isAbsolute ? 4 : 0;
  }
  Division division;
  division.length = static_cast<unsigned>(at - code);
  division.width = opcode == 0xF6 ? 8 : isWide ? 64 : isHalfWidth ? 16 : 32;
  division.isSigned = operation == 7;
  return division;
}

/// Puts the low `width` bits of `value` into a register as an instruction does: 32 bits clear those above.
void put(greg_t &reg, uint64_t value, unsigned width) {
  const uint64_t old = static_cast<uint64_t>(reg);
  const uint64_t mask = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  reg = static_cast<greg_t>(width == 32 ? value & mask : (old & ~mask) | (value & mask));
}

}  // namespace

bool skipDivision(void *context) {
  greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  const Division division = decode(reinterpret_cast<const uint8_t *>(registers[REG_RIP]));
  if (division.length == 0) return false;
  // Compilers widen the dividend by zeros or by its sign, so that its low half is all of it.
  const uint64_t dividend = static_cast<uint64_t>(registers[REG_RAX]);
  const uint64_t lowest = uint64_t(1) << (division.width - 1);
  const bool isLowest = division.isSigned && (dividend & (2 * lowest - 1)) == lowest;
  const uint64_t quotient = isLowest ? lowest : 0, remainder = isLowest ? 0 : dividend;
  if (division.width == 8) {  // AL and AH
    put(registers[REG_RAX], (remainder & 0xFF) << 8 | (quotient & 0xFF), 16);
  } else {
    put(registers[REG_RAX], quotient, division.width);
    put(registers[REG_RDX], remainder, division.width);
  }
  registers[REG_RIP] += division.length;
  return true;
}

#else

bool skipDivision(void *) { return false; }

#endif

}  // namespace softmetal
