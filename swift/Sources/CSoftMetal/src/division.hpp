/// Integer division by zero, and of the lowest integer by -1: no fault on a GPU, nor on an ARM processor.
#pragma once

namespace softmetal {

/// Where the instruction at fault is a division of integers, gives it the result that an ARM processor would and goes
/// on behind it: a quotient of 0 with the dividend as remainder, and the lowest integer divided by -1 is itself.
/// False where it is none. Async-signal-safe: reads the instruction, writes the registers in `context`.
bool skipDivision(void *context);

}  // namespace softmetal
