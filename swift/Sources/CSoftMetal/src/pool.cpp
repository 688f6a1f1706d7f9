#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "softmetal.h"
#include "worker.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace softmetal {
namespace {

thread_local Worker *currentWorker = nullptr;

/// The signal that ends a kernel which ran out of time.
int interruptSignal() { return SIGRTMAX - 3; }

void onInterrupt(int) {
  if (currentWorker) currentWorker->interrupt();
}

/// The handler stays on the fibre it interrupts and leaves it by a jump, so the signal must not stay blocked.
void installInterruptHandler() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_NODEFER | SA_RESTART;
  sigaction(interruptSignal(), &action, nullptr);
}

/// A thread made by one that takes no signals, as those of libdispatch, takes none either.
void unblockInterrupt() {
  static thread_local bool isBlocked = true;
  if (!isBlocked) return;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, interruptSignal());
  isBlocked = pthread_sigmask(SIG_UNBLOCK, &signals, nullptr) != 0;
}

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// What the workers of a pool share for one dispatch.
struct Job {
  const SmDispatch *dispatch = nullptr;
  uint32_t threadgroupOffsets[SM_MAX_BUFFERS] = {};
  uint64_t total = 0;  ///< threadgroups
  uint64_t chunk = 1;  ///< threadgroups taken at a time
  std::atomic<uint64_t> taken{0};
};

/// Lays [[threadgroup(n)]] memory behind the kernel's own threadgroup variables.
void layThreadgroupMemory(Job &job) {
  uint32_t offset = job.dispatch->kernel->staticThreadgroupMemory ? *job.dispatch->kernel->staticThreadgroupMemory : 0;
  for (int i = 0; i < SM_MAX_BUFFERS; ++i) {
    offset = (offset + 15) & ~15u;
    job.threadgroupOffsets[i] = offset;
    offset += job.dispatch->threadgroupLengths[i];
  }
}

}  // namespace

/// Worker threads, and a watchdog that ends a dispatch at its time limit.
/// The thread that calls `run` works too.
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
    pool->watched_.resize(pool->workers_.size());
    installInterruptHandler();
    try {
      for (uint32_t i = 1; i < pool->workers_.size(); ++i)
        pool->threads_.emplace_back([p = pool.get(), i] { p->serve(i); });
      pool->watchdog_ = std::thread([p = pool.get()] { p->watch(); });
    } catch (const std::system_error &) {
      return nullptr;
    }
    return pool;
  }

  ~Pool() {
    {
      // Both locks: neither a worker nor the watchdog may be between its look at `ending_` and its wait.
      std::scoped_lock lock(mutex_, watchMutex_);
      ending_.store(true, std::memory_order_release);
    }
    wake_.notify_all();
    watch_.notify_all();
    for (auto &thread : threads_) thread.join();
    if (watchdog_.joinable()) watchdog_.join();
  }

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()); }

  int32_t run(const SmDispatch &dispatch, double timeLimit) {
    Job &job = job_;
    job.dispatch = &dispatch;
    job.total = uint64_t(dispatch.threadgroups[0]) * dispatch.threadgroups[1] * dispatch.threadgroups[2];
    job.chunk = std::clamp<uint64_t>(job.total / (workers_.size() * 16), 1, 64);
    job.taken.store(0, std::memory_order_relaxed);
    layThreadgroupMemory(job);
    outcome_.store(SM_RUN_OK, std::memory_order_relaxed);
    startWatching(timeLimit);
    const bool shared = workers_.size() > 1 && job.total > 1;
    if (shared) {
      busy_.store(static_cast<uint32_t>(workers_.size()) - 1, std::memory_order_relaxed);
      {
        std::lock_guard lock(mutex_);
        generation_.fetch_add(1, std::memory_order_release);
      }
      wake_.notify_all();
    }
    work(0);
    if (shared)
      for (uint32_t spins = 0; busy_.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins < 4096)
          pause();
        else
          waitIdle();
      }
    stopWatching();
    return outcome_.load(std::memory_order_relaxed);
  }

 private:
  Pool() = default;

  void work(uint32_t index) {
    Worker &worker = *workers_[index];
    unblockInterrupt();
    {
      std::lock_guard lock(watchMutex_);
      watched_[index] = {pthread_self(), true};
    }
    currentWorker = &worker;
    while (outcome_.load(std::memory_order_relaxed) == SM_RUN_OK) {
      const uint64_t begin = job_.taken.fetch_add(job_.chunk, std::memory_order_relaxed);
      if (begin >= job_.total) break;
      const uint64_t end = std::min(begin + job_.chunk, job_.total);
      const int32_t outcome = worker.run(*job_.dispatch, job_.threadgroupOffsets, begin, end, outcome_);
      if (outcome != SM_RUN_OK) stop(outcome);
    }
    std::lock_guard lock(watchMutex_);
    watched_[index].isWorking = false;
    currentWorker = nullptr;
  }

  /// Ends the dispatch, for the first reason that there was.
  void stop(int32_t outcome) {
    int32_t expected = SM_RUN_OK;
    outcome_.compare_exchange_strong(expected, outcome, std::memory_order_relaxed);
  }

  /// A worker thread: spins a little for the next dispatch, because dispatches come in rows, then sleeps.
  void serve(uint32_t index) {
    uint64_t seen = 0;
    for (;;) {
      for (uint32_t spins = 0; spins < 2048 && generation_.load(std::memory_order_acquire) == seen; ++spins) pause();
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return ending_.load() || generation_.load(std::memory_order_relaxed) != seen; });
      }
      if (ending_.load(std::memory_order_acquire)) return;
      seen = generation_.load(std::memory_order_acquire);
      work(index);
      if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard lock(mutex_);
        idle_.notify_one();
      }
    }
  }

  void waitIdle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return busy_.load(std::memory_order_acquire) == 0; });
  }

  void startWatching(double timeLimit) {
    std::lock_guard lock(watchMutex_);
    watching_ = timeLimit > 0;
    if (!watching_) return;
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeLimit));
    if (deadline_ < wakeAt_) watch_.notify_one();
  }

  void stopWatching() {
    std::lock_guard lock(watchMutex_);
    watching_ = false;
  }

  /// Sleeps until the deadline that was set when it last looked, so that short dispatches never wake it.
  void watch() {
    std::unique_lock lock(watchMutex_);
    for (;;) {
      if (ending_.load(std::memory_order_acquire)) return;
      if (!watching_) {
        wakeAt_ = Clock::time_point::max();
        watch_.wait(lock);
      } else if (Clock::now() < deadline_) {
        wakeAt_ = deadline_;
        watch_.wait_until(lock, deadline_);
      } else {
        // A kernel may be between two threadgroups when the signal comes; ask again until all have stopped.
        stop(SM_RUN_TIMEOUT);
        for (const Watched &watched : watched_)
          if (watched.isWorking) pthread_kill(watched.thread, interruptSignal());
        wakeAt_ = Clock::now() + std::chrono::milliseconds(20);
        watch_.wait_until(lock, wakeAt_);
      }
    }
  }

  using Clock = std::chrono::steady_clock;

  /// The thread that a worker runs on, while it does.
  struct Watched {
    pthread_t thread;
    bool isWorking;
  };

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  Job job_;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint32_t> busy_{0};
  std::atomic<bool> ending_{false};

  std::mutex watchMutex_;
  std::condition_variable watch_;
  std::thread watchdog_;
  bool watching_ = false;
  Clock::time_point deadline_ = {}, wakeAt_ = Clock::time_point::max();
  std::atomic<int32_t> outcome_{SM_RUN_OK};
  std::vector<Watched> watched_;  ///< one for each worker
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

uint32_t sm_pool_threads(const SmPool *pool) { return pool->pool->threads(); }

int32_t sm_pool_run(SmPool *pool, const SmDispatch *dispatch, double timeLimit) {
  return pool->pool->run(*dispatch, timeLimit);
}
}
