/// A worker: the memory of `SmWorker` and its stacks, and the running of one
/// threadgroup after another on the calling thread.
#pragma once

#include <atomic>
#include <csetjmp>
#include <memory>

#include "simdgroups.hpp"
#include "softmetal_worker.h"
#include "threads.hpp"

namespace softmetal {

/// Runs threadgroups on the thread that calls `run`. Not movable: kernels find
/// it by address.
class Worker {
 public:
  /// Null when the memory cannot be had.
  static std::unique_ptr<Worker> create();
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Runs threadgroups `begin` to `end` - 1 of the grid, x first, while `outcome` is SM_RUN_OK. Returns an SM_RUN_...
  /// code.
  int32_t run(const SmDispatch &dispatch, const uint32_t *threadgroupOffsets, uint64_t begin, uint64_t end,
              const std::atomic<int32_t> &outcome);

  /// After SM_RUN_FAULT.
  const SmFault &fault() const { return fault_; }

  // For signal handlers on the worker's thread.

  bool isInKernel() const { return isInKernel_.load(std::memory_order_relaxed); }
  bool isOutOfTime() const { return isInKernel() && outcome_->load(std::memory_order_relaxed) == SM_RUN_TIMEOUT; }
  /// Whether the kernel runs on stacks of the worker's.
  bool hasStacks() const { return kernel_->execution != SM_EXECUTION_LOOP; }
  /// Whether one of them has run out, for a stack pointer and an access at fault.
  bool overflows(uintptr_t stackPointer, uintptr_t address) const;
  /// Claims the end of the kernel that runs; false when another signal has, or none runs.
  bool leave() { return isInKernel_.exchange(false, std::memory_order_relaxed); }
  void setFault(const SmFault &fault) { fault_ = fault; }
  /// Ends `run` with this outcome, after `leave`.
  [[noreturn]] void escape(int32_t outcome) { siglongjmp(escape_, outcome); }

 private:
  explicit Worker(void *mapping, size_t mappingSize, SmWorker *state) noexcept
      : mapping_(mapping), mappingSize_(mappingSize), state_(state), threads_(state) {}

  void layRegion();
  void renewRegion();
  void place(const SmDispatch &dispatch, const uint32_t position[3], int axis, uint64_t merged);
  bool runThreadgroup();

  void *mapping_;
  size_t mappingSize_;
  SmWorker *state_;
  Threads threads_;
  std::unique_ptr<SimdgroupFibres> simdgroups_;
  const SmKernel *kernel_ = nullptr;
  const std::atomic<int32_t> *outcome_ = nullptr;  ///< of the dispatch
  std::atomic<bool> isInKernel_{false};
  SmFault fault_ = {};
  sigjmp_buf escape_;
};

}  // namespace softmetal
