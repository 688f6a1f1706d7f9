/// The threadgroups of a dispatch, as its threads take them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace softmetal {

/// The calling thread takes from the front and helpers from the back: in dispatches on the same data, one after
/// another, each finds most of it in its processor's cache.
class Job {
 public:
  enum class End : uint64_t { front = 1, back = uint64_t(1) << 32 };

  /// Threadgroups `begin` to `end` - 1; none when they are equal.
  struct Chunk {
    uint64_t begin = 0, end = 0;

    uint64_t count() const { return end - begin; }
  };

  /// In pieces so small that `threads` threads end at nearly the same time.
  void lay(uint64_t threadgroups, uint64_t threads) {
    constexpr uint64_t perThread = 16, largest = 64, mostChunks = uint64_t(1) << 30;
    threadgroups_ = threadgroups;
    chunk_ =
        std::max(std::clamp<uint64_t>(threadgroups / (threads * perThread), 1, largest), threadgroups / mostChunks);
    chunks_ = (threadgroups + chunk_ - 1) / chunk_;
    taken_.store(0, std::memory_order_relaxed);
  }

  Chunk take(End end) {
    const uint64_t taken = taken_.fetch_add(static_cast<uint64_t>(end), std::memory_order_relaxed);
    if (count(taken) >= chunks_) return {};
    const uint64_t index = end == End::front ? front(taken) : chunks_ - 1 - back(taken);
    return {index * chunk_, std::min((index + 1) * chunk_, threadgroups_)};
  }

  uint64_t threadgroups() const { return threadgroups_; }

  /// Pieces that nobody has taken.
  uint64_t left() const { return chunks_ - std::min(count(taken_.load(std::memory_order_relaxed)), chunks_); }

 private:
  static uint64_t front(uint64_t taken) { return taken & 0xFFFFFFFF; }
  static uint64_t back(uint64_t taken) { return taken >> 32; }
  static uint64_t count(uint64_t taken) { return front(taken) + back(taken); }

  uint64_t threadgroups_ = 0, chunk_ = 1, chunks_ = 0;
  std::atomic<uint64_t> taken_{0};  ///< pieces taken from the front and, from bit 32 on, from the back
};

}  // namespace softmetal
