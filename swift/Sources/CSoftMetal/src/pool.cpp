#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "job.hpp"
#include "pace.hpp"
#include "pause.hpp"
#include "signals.hpp"
#include "softmetal.h"
#include "watchdog.hpp"
#include "worker.hpp"

namespace softmetal {
namespace {

using Clock = Watchdog::Clock;

/// A dispatch that takes less on one thread runs on one: to wake a helper costs that thread 3 us and more, the helper
/// comes after 30 us or so, and takes the data from one processor's cache to the other's.
constexpr std::chrono::microseconds worthSharing{100};
/// A helper that the system takes off its processor within a threadgroup is waited for. What such a wait has cost
/// beyond what helpers saved is worked off before they are asked again: this many times as long alone, so that it adds
/// 5%.
constexpr int repayment = 20;
/// How often a helper looks for the next dispatch before it sleeps: some 10 us.
constexpr uint32_t helperSpins = 512;

/// Lays [[threadgroup(n)]] memory behind the kernel's own threadgroup variables.
void layThreadgroupMemory(const SmDispatch &dispatch, uint32_t offsets[SM_MAX_BUFFERS]) {
  uint32_t offset = dispatch.kernel->staticThreadgroupMemory ? *dispatch.kernel->staticThreadgroupMemory : 0;
  for (int i = 0; i < SM_MAX_BUFFERS; ++i) {
    offset = (offset + 15) & ~15u;
    offsets[i] = offset;
    offset += dispatch.threadgroupLengths[i];
  }
}

}  // namespace

/// The thread that calls `run` works through the dispatch; worker threads help it when they come in time. A watchdog
/// ends a dispatch at its time limit.
class Pool {
 public:
  static std::unique_ptr<Pool> create(uint32_t threads) {
    std::unique_ptr<Pool> pool(new (std::nothrow) Pool);
    if (!pool) return nullptr;
    for (uint32_t i = 0; i < std::max(threads, 1u); ++i) {
      auto worker = Worker::create();
      if (!worker) return nullptr;
      pool->workers_.push_back(std::move(worker));
    }
    installHandlers();
    try {
      for (uint32_t i = 1; i < pool->workers_.size(); ++i)
        pool->helpers_.emplace_back([p = pool.get(), i] { p->serve(*p->workers_[i]); });
      pool->watchdog_ = std::make_unique<Watchdog>([p = pool.get()] { p->expire(); });
    } catch (const std::system_error &) {
      return nullptr;
    }
    return pool;
  }

  ~Pool() {
    isEnding_.store(true, std::memory_order_seq_cst);
    sleepers_.wake(static_cast<uint32_t>(helpers_.size()));
    for (auto &helper : helpers_) helper.join();
  }

  int32_t run(const SmDispatch &dispatch, double timeLimit) {
    const KernelThread thread(*workers_[0]);
    const Clock::time_point start = Clock::now();
    const uint64_t threadgroups =
        uint64_t(dispatch.threadgroups[0]) * dispatch.threadgroups[1] * dispatch.threadgroups[2];
    const bool canShare = workers_.size() > 1 && threadgroups > 1;
    const bool isShared = canShare && isWorthSharing(pace_.expected(dispatch.kernel, threadgroups));
    dispatch_ = &dispatch;
    job_.lay(threadgroups, isShared ? workers_.size() : 1);
    layThreadgroupMemory(dispatch, threadgroupOffsets_);
    outcome_.store(SM_RUN_OK, std::memory_order_relaxed);
    caller_ = pthread_self();
    watchdog_->begin(start, timeLimit);
    if (canShare)
      drainAndShare(isShared, start);
    else
      drain(*workers_[0], Job::End::front);
    watchdog_->end();
    return outcome_.load(std::memory_order_relaxed);
  }

  const SmFault &fault() const { return fault_; }

 private:
  Pool() = default;

  /// Works until no threadgroup is left.
  void drain(Worker &worker, Job::End end) {
    while (runChunk(worker, end)) {
    }
  }

  /// Whether a dispatch of this length, on one thread, is worth the cost of helpers.
  bool isWorthSharing(Pace::Seconds time) const { return time >= worthSharing && time >= repayment * debt_; }

  /// The same with helpers: from the start where `isShared` says so, else once the dispatch has taken long enough to be
  /// worth their cost.
  void drainAndShare(bool isShared, Clock::time_point start) {
    const auto share = [&] {
      isShared = true;
      gate_.open();
      wakeHelpers();
    };
    if (isShared) share();
    uint64_t ran = 0;
    while (const uint64_t count = runChunk(*workers_[0], Job::End::front)) {
      ran += count;
      if (!isShared && job_.left() > 0 && isWorthSharing(Clock::now() - start)) share();
    }
    const Clock::time_point end = Clock::now();
    const Pace::Seconds time = end - start;
    pace_.note(dispatch_->kernel, ran, time);
    if (isShared) {
      gate_.close();
      const Pace::Seconds waited = Clock::now() - end;
      const uint64_t helped = job_.threadgroups() - ran;
      const Pace::Seconds saved = ran > 0 ? time * (static_cast<double>(helped) / static_cast<double>(ran)) : waited;
      debt_ += waited - saved;
    } else {
      debt_ -= time / repayment;
    }
    debt_ = std::max(debt_, Pace::Seconds(0));
  }

  /// Runs some of the threadgroups that are left; gives their number.
  uint64_t runChunk(Worker &worker, Job::End end) {
    if (outcome_.load(std::memory_order_relaxed) != SM_RUN_OK) return 0;
    const Job::Chunk chunk = job_.take(end);
    if (chunk.count() == 0) return 0;
    const int32_t outcome = worker.run(*dispatch_, threadgroupOffsets_, chunk.begin, chunk.end, outcome_);
    if (outcome != SM_RUN_OK && stop(outcome) && outcome == SM_RUN_FAULT) fault_ = worker.fault();
    return chunk.count();
  }

  /// Ends the dispatch, for the first reason that there was; true for that.
  bool stop(int32_t outcome) {
    int32_t expected = SM_RUN_OK;
    return outcome_.compare_exchange_strong(expected, outcome, std::memory_order_relaxed);
  }

  /// A helper: looks out a little for the next dispatch, because dispatches come in rows, then sleeps.
  void serve(Worker &worker) {
    const KernelThread thread(worker);
    while (!isEnding_.load(std::memory_order_seq_cst)) {
      for (uint32_t spins = 0; spins < helperSpins && !gate_.isOpen(); ++spins) pause();
      if (gate_.enter()) {
        wakeHelpers();
        drain(worker, Job::End::back);
        // Nothing is left: nobody need come in, this thread included.
        gate_.shut();
        gate_.leave();
      } else {
        sleepers_.sleepUnless([&] { return gate_.isOpen() || isEnding_.load(std::memory_order_seq_cst); });
      }
    }
  }

  /// Each thread that takes part wakes two more, so that the first pays for few.
  void wakeHelpers() { sleepers_.wake(static_cast<uint32_t>(std::min<uint64_t>(2, job_.left()))); }

  /// Ends a dispatch that has run for too long. A thread that is not in a kernel takes the signal for nothing.
  void expire() {
    stop(SM_RUN_TIMEOUT);
    for (std::thread &helper : helpers_) pthread_kill(helper.native_handle(), interruptSignal());
    pthread_kill(caller_, interruptSignal());
  }

  std::vector<std::unique_ptr<Worker>> workers_;  ///< the first is the calling thread's
  const SmDispatch *dispatch_ = nullptr;
  uint32_t threadgroupOffsets_[SM_MAX_BUFFERS] = {};  ///< bytes, of [[threadgroup(n)]]
  Job job_;
  std::atomic<int32_t> outcome_{SM_RUN_OK};
  SmFault fault_ = {};  ///< of the thread that ended the dispatch by it
  Pace pace_;
  Pace::Seconds debt_{};  ///< time lost by helpers that has not been worked off
  pthread_t caller_ = {};

  Gate gate_;
  Sleepers sleepers_;
  std::atomic<bool> isEnding_{false};
  std::vector<std::thread> helpers_;
  std::unique_ptr<Watchdog> watchdog_;  ///< ends first
};

}  // namespace softmetal

struct SmPool {
  std::unique_ptr<softmetal::Pool> pool;
};

extern "C" {

SmPool *sm_pool_create(uint32_t threads) {
  auto pool = softmetal::Pool::create(threads);
  return pool ? new (std::nothrow) SmPool{std::move(pool)} : nullptr;
}

void sm_pool_destroy(SmPool *pool) { delete pool; }

int32_t sm_pool_run(SmPool *pool, const SmDispatch *dispatch, double timeLimit) {
  return pool->pool->run(*dispatch, timeLimit);
}

SmFault sm_pool_fault(const SmPool *pool) { return pool->pool->fault(); }

void sm_watch_faults() { softmetal::installHandlers(); }
}
