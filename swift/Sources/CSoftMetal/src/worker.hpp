/// A worker: the memory of `SmWorker` and its fibres, and the running of one
/// threadgroup after another on the calling thread.
#pragma once

#include <atomic>
#include <csetjmp>
#include <memory>

#include "simdgroups.hpp"
#include "softmetal_worker.h"

namespace softmetal {

/// Why a fibre cannot run, when its SIMD group is not uniform.
enum class ThreadState : uint8_t { atSimdgroup, atThreadgroup, ended };

/// Runs threadgroups on the thread that calls `run`. Not movable: fibres find
/// their worker by address.
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
  bool runsFibres() const { return kernel_->execution != SM_EXECUTION_LOOP; }
  /// Whether a fibre's stack has run out, for a stack pointer and an access at fault.
  bool overflowsFibre(uintptr_t stackPointer, uintptr_t address) const;
  /// Claims the end of the kernel that runs; false when another signal has, or none runs.
  bool leave() { return isInKernel_.exchange(false, std::memory_order_relaxed); }
  void setFault(const SmFault &fault) { fault_ = fault; }
  /// Ends `run` with this outcome, after `leave`.
  [[noreturn]] void escape(int32_t outcome) { siglongjmp(escape_, outcome); }

 private:
  explicit Worker(void *mapping, size_t mappingSize, SmWorker *state) noexcept
      : mapping_(mapping), mappingSize_(mappingSize), state_(state) {}

  static void *yield(SmWorker *state, uint64_t thread, uint64_t reason, void *stackPointer, const void *syncPoint);
  static void fibreMain();

  void layRegion();
  void renewRegion();
  void place(const SmDispatch &dispatch, const uint32_t position[3], int axis, uint64_t merged);
  void prepareStacks(uint32_t threadCount);
  void prepareFibres(uint32_t threadCount);
  void stop(uint32_t thread, uint64_t reason, const void *syncPoint);
  void materialise(uint32_t simdgroup, uint32_t running);
  void *next(uint32_t simdgroup);
  bool releaseSimdgroup(uint32_t simdgroup);
  bool releaseThreadgroup();

  void *mapping_;
  size_t mappingSize_;
  SmWorker *state_;
  std::unique_ptr<SimdgroupFibres> simdgroups_;
  const SmKernel *kernel_ = nullptr;
  void *mainStackPointer_ = nullptr;
  uint32_t stacksReady_ = 0;
  uint32_t runnable_[SM_MAX_SIMDGROUPS] = {};  ///< lanes of SIMD groups that are not uniform, one bit a lane
  ThreadState threadStates_[SM_MAX_THREADS] = {};  ///< of the lanes that are not runnable
  const void *syncPoints_[SM_MAX_THREADS] = {};
  bool barrierDiverged_ = false;  ///< lanes of one SIMD group wait at different barriers
  const std::atomic<int32_t> *outcome_ = nullptr;  ///< of the dispatch
  std::atomic<bool> isInKernel_{false};
  SmFault fault_ = {};
  sigjmp_buf escape_;
};

}  // namespace softmetal
