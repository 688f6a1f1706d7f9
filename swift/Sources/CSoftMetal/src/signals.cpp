#include "signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

#include "division.hpp"
#include "fault.hpp"
#include "worker.hpp"

namespace softmetal {
namespace {

/// What handlers know of the thread that they run on. In the block that exists as soon as the thread does
/// (initial-exec): the first look at a variable of the usual kind may allocate, which a handler must not.
struct ThreadState {
  Worker *worker;  ///< null: the thread runs no kernels
  ThreadStack stack;
  bool isPrepared;
  const void *passedOn;       ///< the context that `passOn` has handed on
  const void *passedOnFrame;  ///< and from which frame
};

__attribute__((tls_model("initial-exec"))) thread_local ThreadState thisThread = {};

constexpr int faultSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr int faultSignalCount = sizeof faultSignals / sizeof *faultSignals;

int indexOf(int signal) {
  int i = 0;
  while (i < faultSignalCount - 1 && faultSignals[i] != signal) ++i;
  return i;
}

// MARK: Handing on

/// A handler that was there before ours. Never freed, since a signal may be on its way to it.
struct Previous {
  struct sigaction action;
  const Previous *next;
};

std::mutex installing;
/// The handlers that were found, the last one first; read by signal handlers, which therefore see whole entries only.
std::atomic<const Previous *> previous[faultSignalCount];

/// Acts as if `action` were installed.
void perform(const struct sigaction &action, int signal, siginfo_t *info, void *context) {
  const bool isDefault = action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN;
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (isDefault || action.sa_flags & SA_RESETHAND) {
    struct sigaction reset = {};
    reset.sa_handler = SIG_DFL;
    sigaction(signal, &reset, nullptr);
  }
  if (isDefault) {
    // An instruction that is at fault runs again on return and now ends the process, in its own place. A signal that
    // was sent does not come again by itself; it stays blocked up to the return.
    if (info->si_code <= 0) raise(signal);
  } else if (action.sa_flags & SA_SIGINFO) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

/// Hands a signal on to the handler found last. That one may have been installed over ours and hand on to ours in its
/// turn, which shows by the same context further down the stack: then the handler that was there first has it.
void passOn(int signal, siginfo_t *info, void *context) {
  const void *frame = __builtin_frame_address(0);
  const Previous *entry = previous[indexOf(signal)].load(std::memory_order_acquire);
  if (!entry) return;
  const bool comesBack = thisThread.passedOn == context && frame < thisThread.passedOnFrame;
  if (comesBack) {
    while (entry->next) entry = entry->next;
    return perform(entry->action, signal, info, context);
  }
  thisThread.passedOn = context;
  thisThread.passedOnFrame = frame;
  perform(entry->action, signal, info, context);
  thisThread.passedOn = nullptr;
}

// MARK: Handlers

/// Handlers leave a kernel by a jump and never return: what the system does on return is done here.
void restoreSignalMask(const void *context) {
  sigset_t mask;
  sigemptyset(&mask);
  // The kernel's set has 64 signals; the C library's has room for more.
  static_assert(sizeof mask >= sizeof(uint64_t));
  __builtin_memcpy(&mask, &static_cast<const ucontext_t *>(context)->uc_sigmask, sizeof(uint64_t));
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

// What makes the handlers safe: they touch memory of this thread and atomic variables only, call nothing but
// pthread_sigmask, sigaction, raise and siglongjmp, which POSIX allows here, and jump away from nothing but a kernel.
// A kernel holds no lock and allocates nothing, so that nobody misses its end; what it leaves on its stacks belongs to
// the worker, which lays all of it anew. The jump is over by the time anything else can look at the worker: `leave`
// has a kernel left once, by the first signal.

void onInterrupt(int, siginfo_t *, void *context) {
  Worker *worker = thisThread.worker;
  if (!worker || !worker->isOutOfTime() || !worker->leave()) return;
  restoreSignalMask(context);
  worker->escape(SM_RUN_TIMEOUT);
}

void onFault(int signal, siginfo_t *info, void *context) {
  Worker *worker = thisThread.worker;
  // A positive code: raised by an instruction, and not sent by somebody.
  if (!worker || !worker->isInKernel() || info->si_code <= 0) return passOn(signal, info, context);
  if (signal == SIGFPE && skipDivision(context)) return;
  if (!worker->leave()) return passOn(signal, info, context);
  worker->setFault(describeFault(signal, info, context, *worker, thisThread.stack));
  restoreSignalMask(context);
  worker->escape(SM_RUN_FAULT);
}

// MARK: Threads

/// A stack for signal handlers: that of a kernel may be what has run out. Given to a thread that has none.
class SignalStack {
 public:
  void install() {
    stack_t present = {};
    if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return;
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = size;
    if (sigaltstack(&stack, nullptr) == 0)
      memory_ = memory;
    else
      munmap(memory, size);
  }

  ~SignalStack() {
    if (!memory_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory_, size);
  }

 private:
  /// Room for every register of the processor, and for a handler of another's that prints where the process was.
  static constexpr size_t size = 256 * 1024;

  void *memory_ = nullptr;
};

thread_local SignalStack signalStack;

ThreadStack findThreadStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void *low = nullptr;
  size_t size = 0, guard = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_destroy(&attributes);
  const uintptr_t address = reinterpret_cast<uintptr_t>(low);
  return {address, address + size, guard};
}

/// Once for each thread. A thread made by one that takes no signals, as those of libdispatch, takes none either.
void prepareThread() {
  if (thisThread.isPrepared) return;
  thisThread.isPrepared = true;
  signalStack.install();
  thisThread.stack = findThreadStack();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, interruptSignal());
  for (const int signal : faultSignals) sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

int interruptSignal() { return SIGRTMAX - 3; }

void installHandlers() {
  std::lock_guard lock(installing);
  static const bool isInstalled = [] {
    struct sigaction interrupt = {};
    interrupt.sa_sigaction = onInterrupt;
    interrupt.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    return sigaction(interruptSignal(), &interrupt, nullptr) == 0;
  }();
  (void)isInstalled;
  for (int i = 0; i < faultSignalCount; ++i) {
    struct sigaction present = {};
    if (sigaction(faultSignals[i], nullptr, &present) != 0 || present.sa_sigaction == onFault) continue;
    const Previous *latest = previous[i].load(std::memory_order_relaxed);
    if (!latest || latest->action.sa_sigaction != present.sa_sigaction) {
      const Previous *entry = new (std::nothrow) Previous{present, latest};
      if (!entry) continue;
      previous[i].store(entry, std::memory_order_release);
    }
    struct sigaction ours = {};
    ours.sa_sigaction = onFault;
    ours.sa_mask = present.sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (present.sa_flags & (SA_RESTART | SA_NODEFER));
    sigaction(faultSignals[i], &ours, nullptr);
  }
}

KernelThread::KernelThread(Worker &worker) {
  prepareThread();
  thisThread.worker = &worker;
}

KernelThread::~KernelThread() { thisThread.worker = nullptr; }

}  // namespace softmetal
