/// What kernels do that the processor cannot do, on the pool of worker threads alone: stacks that run out, wild
/// accesses, every form of a division instruction; and a handler of another's, installed over the pool's.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "softmetal_worker.h"

namespace {

int failures = 0;

void expect(bool holds, const char *what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

volatile uint64_t sink = 0;
uint8_t *volatile wild = nullptr;

__attribute__((noinline, no_sanitize("address", "thread"))) uint64_t recurse(uint64_t depth) {
  volatile uint8_t frame[512];
  for (unsigned i = 0; i < sizeof frame; i += 64) frame[i] = static_cast<uint8_t>(depth);
  return depth == 0 ? 0 : recurse(depth + 1) + frame[depth % sizeof frame];
}

void overflow(const SmThreadgroup *) { sink = recurse(1); }
__attribute__((no_sanitize("address", "thread", "undefined"))) void writeWildly(const SmThreadgroup *) { *wild = 1; }
void trap(const SmThreadgroup *) { __builtin_trap(); }
void runForever(const SmThreadgroup *) {
  for (;;) sink = sink + 1;
}
void doNothing(const SmThreadgroup *) {}

SmKernel kernel(uint32_t execution, void (*run)(const SmThreadgroup *)) {
  SmKernel kernel = {};
  kernel.name = "kernel";
  kernel.execution = execution;
  kernel.maxThreads = SM_MAX_THREADS;
  kernel.run = run;
  return kernel;
}

SmDispatch dispatch(const SmKernel &kernel) {
  SmDispatch dispatch = {};
  dispatch.kernel = &kernel;
  for (int i = 0; i < 3; ++i)
    dispatch.threadgroups[i] = dispatch.threadsPerThreadgroup[i] = dispatch.threadsPerGrid[i] = 1;
  dispatch.threadgroups[0] = 40;
  dispatch.threadsPerThreadgroup[0] = 8;
  dispatch.threadsPerGrid[0] = 320;
  return dispatch;
}

struct Case {
  const char *name;
  void (*run)(const SmThreadgroup *);
  uint8_t *address;
  uint32_t kind, access;
};

/// An address without memory, each time another: sanitizers keep fixed ones for themselves.
uint8_t *unmapped() {
  constexpr size_t size = size_t(1) << 30;
  void *memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  munmap(memory, size);
  static size_t count = 0;
  return static_cast<uint8_t *>(memory) + size / 2 + 4096 * ++count;
}

void testFaults(SmPool *pool) {
  uint8_t *const nowhere = unmapped();
  uint8_t *const code = reinterpret_cast<uint8_t *>(&doNothing);
  uint8_t *const none = reinterpret_cast<uint8_t *>(uintptr_t(1) << 62);
  const Case cases[] = {
      {"unmapped", writeWildly, nowhere, SM_FAULT_UNMAPPED, SM_FAULT_WRITE},
      {"null", writeWildly, nullptr, SM_FAULT_UNMAPPED, SM_FAULT_WRITE},
      {"protected", writeWildly, code, SM_FAULT_PROTECTED, SM_FAULT_WRITE},
      {"no address", writeWildly, none, SM_FAULT_NO_ADDRESS, SM_FAULT_UNKNOWN},
      {"stack", overflow, nullptr, SM_FAULT_STACK, SM_FAULT_WRITE},
      {"trap", trap, nullptr, SM_FAULT_INSTRUCTION, SM_FAULT_UNKNOWN},
  };
  for (const uint32_t execution : {SM_EXECUTION_LOOP, SM_EXECUTION_THREADS}) {
    for (const Case &each : cases) {
      wild = each.address;
      const SmKernel faulty = kernel(execution, each.run), fine = kernel(execution, doNothing);
      const SmDispatch work = dispatch(faulty), after = dispatch(fine);
      expect(sm_pool_run(pool, &work, 60) == SM_RUN_FAULT, each.name);
      const SmFault fault = sm_pool_fault(pool);
      expect(fault.kind == each.kind, each.name);
#if defined(__x86_64__)
      if (each.kind != SM_FAULT_STACK) expect(fault.access == each.access, each.name);
#endif
      if (each.kind == SM_FAULT_UNMAPPED || each.kind == SM_FAULT_PROTECTED)
        expect(fault.address == reinterpret_cast<uintptr_t>(each.address), each.name);
      expect(sm_pool_run(pool, &after, 60) == SM_RUN_OK, "the dispatch after a fault");
    }
  }
}

/// A signal that comes late must not end the dispatch after.
void testTimeLimit(SmPool *pool) {
// ThreadSanitizer holds the signal back until the thread calls into the system, which this kernel does not.
#if !__has_feature(thread_sanitizer)
  for (const uint32_t execution : {SM_EXECUTION_LOOP, SM_EXECUTION_THREADS}) {
    const SmKernel endless = kernel(execution, runForever), fine = kernel(execution, doNothing);
    const SmDispatch work = dispatch(endless), after = dispatch(fine);
    for (int i = 0; i < 5; ++i) {
      expect(sm_pool_run(pool, &work, 0.01) == SM_RUN_TIMEOUT, "the time limit");
      for (int k = 0; k < 20; ++k) expect(sm_pool_run(pool, &after, 60) == SM_RUN_OK, "the dispatch after the limit");
    }
  }
#else
  (void)pool;
  (void)runForever;
#endif
}

#if defined(__x86_64__)

/// Divides 1000 by `zero`, which a handler must go on behind; the sentinels show that it goes on at the right place.
#define DIVIDE(instruction)                                                      \
  do {                                                                           \
    uint64_t quotient = 1000, remainder = 0, before = 0, behind = 0;             \
    asm volatile("movl $1, %k2\n\t" instruction "\n\tmovl $2, %k3"               \
                 : "+a"(quotient), "+d"(remainder), "=&r"(before), "=&r"(behind) \
                 : "r"(table), "r"(uint64_t(1)), "r"(uint64_t(0))                \
                 : "cc", "memory", "r12", "r13");                                \
    divisions += before == 1 && behind == 2;                                     \
    if (before != 1 || behind != 2) std::printf("wrong: %s\n", instruction);     \
  } while (0)

uint64_t divisions = 0, lowestQuotient = 0, lowestRemainder = 1, zeroQuotient = 1, zeroRemainder = 0;
alignas(64) uint64_t table[64] = {};

void divide(const SmThreadgroup *) {
  uint64_t *table = ::table;
  DIVIDE("divl %k6");
  DIVIDE("idivl %k6");
  DIVIDE("divq %6");
  DIVIDE("idivq %6");
  DIVIDE("divw %w6");
  DIVIDE("idivw %w6");
  DIVIDE("xorl %%r12d, %%r12d\n\tdivb %%r12b");
  DIVIDE("xorl %%r12d, %%r12d\n\tidivq %%r12");
  DIVIDE("divl (%4)");
  DIVIDE("idivq 8(%4)");
  DIVIDE("divl 256(%4)");
  DIVIDE("idivl (%4,%5,8)");
  DIVIDE("divq 16(%4,%5,4)");
  DIVIDE("divl 300(%4,%5,1)");
  DIVIDE("movq %4, %%r13\n\tdivl (%%r13)");
  DIVIDE("movq %4, %%r12\n\tidivl (%%r12)");
  DIVIDE("movq %4, %%r12\n\tdivb 4(%%r12)");
  DIVIDE("movq %4, %%r13\n\tidivw (%%r13,%5,2)");
  DIVIDE("leaq -8(%4), %%r12\n\tdivl 8(,%%r12,1)");
  DIVIDE("divl %%ss:(%4)");
  DIVIDE("pushq $0\n\tdivq (%%rsp)\n\tpopq %%r12");
  uint64_t rax = 1000, rdx = 0;
  asm volatile("divl %2" : "+a"(rax), "+d"(rdx) : "r"(0u) : "cc");
  zeroQuotient = rax, zeroRemainder = rdx;
  rax = uint64_t(1) << 63, rdx = ~uint64_t(0);
  asm volatile("idivq %2" : "+a"(rax), "+d"(rdx) : "r"(~uint64_t(0)) : "cc");
  lowestQuotient = rax, lowestRemainder = rdx;
}

void testDivision(SmPool *pool) {
  for (const uint32_t execution : {SM_EXECUTION_LOOP, SM_EXECUTION_THREADS}) {
    const SmKernel dividing = kernel(execution, divide);
    SmDispatch work = dispatch(dividing);
    work.threadgroups[0] = work.threadsPerThreadgroup[0] = work.threadsPerGrid[0] = 1;
    divisions = 0;
    expect(sm_pool_run(pool, &work, 60) == SM_RUN_OK, "divisions");
    expect(divisions == 21, "each division is gone on behind");
    expect(zeroQuotient == 0 && zeroRemainder == 1000, "1000 divided by 0");
    expect(lowestQuotient == uint64_t(1) << 63 && lowestRemainder == 0, "the lowest integer divided by -1");
  }
}

#else

void testDivision(SmPool *) {}

#endif

#if defined(__x86_64__)

// Handlers of others: one installed before the pool, one after, which hands on what it does not know to the handler
// that it found, the pool's. Each knows one address, and goes on with a pointer that leads somewhere.

uint8_t *guardPage() {
  return static_cast<uint8_t *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

uint8_t *const firstsOwn = guardPage(), *const othersOwn = guardPage();
struct sigaction found;
std::atomic<int> seenByFirst{0}, seenByOther{0};

void goOn(void *context) {
  static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RAX] = reinterpret_cast<greg_t>(&sink);
}

void firstHandler(int, siginfo_t *info, void *context) {
  ++seenByFirst;
  if (info->si_addr != firstsOwn) _exit(7);
  goOn(context);
}

void otherHandler(int signal, siginfo_t *info, void *context) {
  ++seenByOther;
  info->si_addr == othersOwn ? goOn(context) : found.sa_sigaction(signal, info, context);
}

void install(void (*handler)(int, siginfo_t *, void *), struct sigaction *before) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, before);
}

/// Faults outside any kernel.
void touch(uint8_t *address) { asm volatile("movb $1, (%0)" : "+a"(address) : : "memory"); }

void testHandlers(SmPool *pool) {
  const SmKernel faulty = kernel(SM_EXECUTION_THREADS, writeWildly);
  const SmDispatch work = dispatch(faulty);
  wild = unmapped();
  touch(firstsOwn);
  expect(seenByFirst == 1, "what no kernel has raised goes on to the handler before the pool's");
  install(otherHandler, &found);
  expect(sm_pool_run(pool, &work, 60) == SM_RUN_FAULT && seenByOther > 0, "a kernel's fault, handed on by another's");
  for (const bool isInFront : {false, true}) {
    if (isInFront) sm_watch_faults();
    seenByFirst = seenByOther = 0;
    const bool isCaught = sm_pool_run(pool, &work, 60) == SM_RUN_FAULT;
    if (isInFront) expect(isCaught && seenByOther == 0, "a kernel's fault, ahead of another's handler");
    seenByOther = 0;
    for (int i = 0; i < 3; ++i) {
      touch(othersOwn);
      touch(firstsOwn);
    }
    expect(seenByOther == 6, "what no kernel has raised goes on to the handler after the pool's");
    expect(seenByFirst == 3, "and from there to the first");
  }
}

#else

void testHandlers(SmPool *) {}

#endif

}  // namespace

int main() {
#if defined(__x86_64__)
  install(firstHandler, nullptr);
#endif
  for (uint32_t threads = 1; threads <= 3; ++threads) {
    SmPool *pool = sm_pool_create(threads);
    if (!pool) return 1;
    for (int i = 0; i < 20; ++i) testFaults(pool);
    testDivision(pool);
    testTimeLimit(pool);
    if (threads == 3) testHandlers(pool);
    sm_pool_destroy(pool);
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
