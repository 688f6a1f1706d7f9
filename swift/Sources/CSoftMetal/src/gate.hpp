/// How helpers come into a dispatch and leave it, and how they sleep between two. Neither takes a lock: a helper that
/// the system takes off its processor stops nobody, unless it is inside.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>

#include "pause.hpp"

namespace softmetal {

/// A semaphore of the system: a count in memory, with a call into the kernel only where somebody sleeps.
class Semaphore {
 public:
  Semaphore() { sem_init(&semaphore_, 0, 0); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  Semaphore(const Semaphore &) = delete;
  Semaphore &operator=(const Semaphore &) = delete;

  void post() { sem_post(&semaphore_); }
  void wait() {
    while (sem_wait(&semaphore_) != 0) {
    }
  }

 private:
  sem_t semaphore_;
};

/// Lets helpers in while it is open. Whoever has opened it waits for those inside, never for one that has not come.
class Gate {
 public:
  /// What was written before is seen by all who come in.
  void open() { state_.store(isOpenBit, std::memory_order_seq_cst); }

  bool isOpen() const { return state_.load(std::memory_order_seq_cst) & isOpenBit; }

  /// False when the gate is closed.
  bool enter() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    while (state & isOpenBit)
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }

  /// Lets nobody in any more. Called by the owner or from inside.
  void shut() { state_.fetch_and(~isOpenBit, std::memory_order_relaxed); }

  void leave() {
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == (isAwaitedBit | 1)) allLeft_.post();
  }

  /// Shuts the gate and returns when all have left: spins a little, since they are at their last threadgroups, then
  /// gives them the processor.
  void close() {
    shut();
    for (uint32_t spins = 0; spins < 512; ++spins, pause())
      if (state_.load(std::memory_order_acquire) == 0) return;
    if (state_.fetch_or(isAwaitedBit, std::memory_order_acq_rel) != 0) allLeft_.wait();
    state_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t isOpenBit = 1u << 31, isAwaitedBit = 1u << 30;

  std::atomic<uint32_t> state_{0};  ///< the two bits, and how many are inside
  Semaphore allLeft_;
};

/// Threads that sleep until one is wanted. A call into the kernel is made for each that is woken, and for no other.
class Sleepers {
 public:
  /// Sleeps until `wake`, unless `isWanted` says that there is work. A caller of `wake` who made work before either
  /// sees this thread or is seen by it.
  template <typename Condition>
  void sleepUnless(Condition isWanted) {
    count_.fetch_add(1, std::memory_order_seq_cst);
    // Where it cannot be taken back, somebody has posted for this thread.
    if (!isWanted() || !takeOne()) wake_.wait();
  }

  /// Wakes up to `count` threads.
  void wake(uint32_t count) {
    for (; count > 0 && takeOne(); --count) wake_.post();
  }

 private:
  bool takeOne() {
    uint32_t count = count_.load(std::memory_order_seq_cst);
    while (count > 0)
      if (count_.compare_exchange_weak(count, count - 1, std::memory_order_seq_cst)) return true;
    return false;
  }

  std::atomic<uint32_t> count_{0};  ///< those that sleep and that nobody has woken
  Semaphore wake_;
};

}  // namespace softmetal
