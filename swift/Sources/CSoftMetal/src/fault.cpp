#include "fault.hpp"

#include <ucontext.h>

#include "worker.hpp"

namespace softmetal {
namespace {

const ucontext_t &contextOf(const void *context) { return *static_cast<const ucontext_t *>(context); }

#if defined(__x86_64__)

uintptr_t stackPointer(const void *context) {
  return static_cast<uintptr_t>(contextOf(context).uc_mcontext.gregs[REG_RSP]);
}

/// From the error code that the processor gives with a page fault.
uint32_t accessOf(const void *context) {
  const greg_t *registers = contextOf(context).uc_mcontext.gregs;
  constexpr greg_t pageFault = 14, isWrite = 1 << 1, isFetch = 1 << 4;
  if (registers[REG_TRAPNO] != pageFault) return SM_FAULT_UNKNOWN;
  if (registers[REG_ERR] & isFetch) return SM_FAULT_EXECUTE;
  return registers[REG_ERR] & isWrite ? SM_FAULT_WRITE : SM_FAULT_READ;
}

#elif defined(__aarch64__)

uintptr_t stackPointer(const void *context) { return contextOf(context).uc_mcontext.sp; }

uint32_t accessOf(const void *) { return SM_FAULT_UNKNOWN; }

#endif

}  // namespace

SmFault describeFault(int signal, const siginfo_t *info, const void *context, const Worker &worker,
                      const ThreadStack &stack) {
  SmFault fault = {};
  if (signal != SIGSEGV && signal != SIGBUS) {
    fault.kind = signal == SIGFPE ? SM_FAULT_ARITHMETIC : SM_FAULT_INSTRUCTION;
    return fault;
  }
  const uintptr_t pointer = stackPointer(context);
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  fault.access = accessOf(context);
  // No address is told for one that no memory can have.
  if (info->si_code == SI_KERNEL) {
    fault.kind = SM_FAULT_NO_ADDRESS;
    return fault;
  }
  fault.address = address;
  const bool isProtected = signal == SIGSEGV && info->si_code == SEGV_ACCERR;
  const bool overflows = worker.hasStacks() ? worker.overflows(pointer, address) : stack.overflows(pointer, address);
  fault.kind = overflows ? SM_FAULT_STACK : isProtected ? SM_FAULT_PROTECTED : SM_FAULT_UNMAPPED;
  return fault;
}

}  // namespace softmetal
