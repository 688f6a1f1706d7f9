/// Signals on threads that run kernels: the one that ends a kernel at its time limit, and those that the processor
/// raises for what a kernel does.
#pragma once

namespace softmetal {

class Worker;

/// The signal that ends a kernel which ran out of time.
int interruptSignal();

/// Installs the handlers, or puts them in front again where another has been installed since. What no kernel has raised
/// goes on to the handlers that were there.
void installHandlers();

/// While it lives, the calling thread runs kernels as `worker`: signals that they raise are the worker's, are not
/// blocked, and are handled on a stack of their own.
class KernelThread {
 public:
  explicit KernelThread(Worker &worker);
  ~KernelThread();
  KernelThread(const KernelThread &) = delete;
  KernelThread &operator=(const KernelThread &) = delete;
};

}  // namespace softmetal
