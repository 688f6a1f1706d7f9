/// Ends a dispatch at its time limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace softmetal {

/// A thread that calls `expire` from the deadline until the end of what it watches.
class Watchdog {
 public:
  /// Throws std::system_error when the thread cannot be had.
  explicit Watchdog(std::function<void()> expire) : expire_(std::move(expire)), thread_([this] { watch(); }) {}

  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      isEnding_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  using Clock = std::chrono::steady_clock;

  /// Watches what begins at `start`; `timeLimit` in seconds, 0 for none.
  void begin(Clock::time_point start, double timeLimit) {
    std::lock_guard lock(mutex_);
    isWatching_ = timeLimit > 0;
    if (!isWatching_) return;
    const std::chrono::duration<double> limit(std::min(timeLimit, longest));
    deadline_ = start + std::chrono::duration_cast<Clock::duration>(limit);
    if (deadline_ < wakeAt_) wake_.notify_one();
  }

  /// `expire` is not called after this.
  void end() {
    std::lock_guard lock(mutex_);
    isWatching_ = false;
  }

 private:
  static constexpr double longest = 1e9;  ///< seconds; the clock could not count many times that

  /// Sleeps until the deadline that was set when it last looked, so that short dispatches never wake it.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!isEnding_) {
      if (!isWatching_) {
        wakeAt_ = Clock::time_point::max();
        wake_.wait(lock);
      } else if (Clock::now() < deadline_) {
        wakeAt_ = deadline_;
        wake_.wait_until(lock, deadline_);
      } else {
        // A kernel may be between two threadgroups when the signal comes; ask again until all have stopped.
        expire_();
        wakeAt_ = Clock::now() + std::chrono::milliseconds(20);
        wake_.wait_until(lock, wakeAt_);
      }
    }
  }

  const std::function<void()> expire_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool isWatching_ = false, isEnding_ = false;
  Clock::time_point deadline_ = {}, wakeAt_ = Clock::time_point::max();
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace softmetal
