/// Drives the pool of worker threads alone, under a sanitizer: dispatches of loops and of threads, on several threads,
/// one after another and from pools side by side, short ones and such as helpers are called to, in a row and with
/// pauses in which helpers fall asleep. With the argument `race` its kernel writes one variable from all threads, which
/// ThreadSanitizer has to see.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "softmetal_worker.h"

namespace {

std::atomic<uint64_t> counted{0};
uint64_t raced = 0;

void countThreads(const SmThreadgroup *group) { counted += group->threadCount; }
void countThread(const SmThreadgroup *) { ++counted; }
void race(const SmThreadgroup *) { ++raced; }

std::atomic<uint32_t> visits[5000];

/// Some microseconds of work, so that helpers come.
void visit(const SmThreadgroup *group) {
  volatile uint32_t work = 0;
  for (uint32_t i = 0; i < 1000; ++i) work = work + i;
  ++visits[group->position[0]];
}

SmKernel kernel(uint32_t execution, void (*run)(const SmThreadgroup *)) {
  SmKernel kernel = {};
  kernel.name = "kernel";
  kernel.execution = execution;
  kernel.maxThreads = SM_MAX_THREADS;
  kernel.run = run;
  return kernel;
}

SmDispatch dispatch(const SmKernel &kernel, uint32_t threadgroups, uint32_t threads) {
  SmDispatch dispatch = {};
  dispatch.kernel = &kernel;
  for (int i = 0; i < 3; ++i)
    dispatch.threadgroups[i] = dispatch.threadsPerThreadgroup[i] = dispatch.threadsPerGrid[i] = 1;
  dispatch.threadgroups[0] = threadgroups;
  dispatch.threadsPerThreadgroup[0] = threads;
  dispatch.threadsPerGrid[0] = threadgroups * threads;
  return dispatch;
}

/// Runs dispatches of every size; gives the threads that they have in all.
uint64_t runAll(uint32_t workers) {
  const SmKernel loop = kernel(SM_EXECUTION_LOOP, countThreads), alone = kernel(SM_EXECUTION_THREADS, countThread);
  SmPool *pool = sm_pool_create(workers);
  if (!pool) return 0;
  uint64_t threads = 0;
  for (uint32_t i = 1; i <= 300; ++i) {
    for (const SmKernel *kernel : {&loop, &alone}) {
      const SmDispatch work = dispatch(*kernel, 1 + i % 40, 1 + i % 100);
      if (sm_pool_run(pool, &work, i % 2 ? 60 : 0) != SM_RUN_OK) return 0;
      threads += work.threadsPerGrid[0];
    }
  }
  sm_pool_destroy(pool);
  return threads;
}

/// Whether each threadgroup of dispatches of many sizes runs once.
bool visitsAll(uint32_t workers) {
  const SmKernel visiting = kernel(SM_EXECUTION_LOOP, visit);
  SmPool *pool = sm_pool_create(workers);
  if (!pool) return false;
  bool isRight = true;
  for (uint32_t round = 0; round < 60; ++round) {
    const uint32_t threadgroups = round % 3 == 0 ? 1 + round % 7 : round % 3 == 1 ? 40 + round : 800 + 67 * round;
    const SmDispatch work = dispatch(visiting, threadgroups, 1);
    if (sm_pool_run(pool, &work, 60) != SM_RUN_OK) isRight = false;
    for (uint32_t i = 0; i < 5000; ++i)
      if (visits[i].exchange(0) != (i < threadgroups)) isRight = false;
    if (round % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  sm_pool_destroy(pool);
  return isRight;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::strcmp(argv[1], "race") == 0) {
    const SmKernel racing = kernel(SM_EXECUTION_LOOP, race);
    const SmDispatch work = dispatch(racing, 100000, 1);
    SmPool *pool = sm_pool_create(4);
    sm_pool_run(pool, &work, 0);
    sm_pool_destroy(pool);
    return 0;
  }
  std::atomic<uint64_t> expected{0};
  std::vector<std::thread> callers;
  for (uint32_t workers = 1; workers <= 4; ++workers)
    callers.emplace_back([&expected, workers] { expected += runAll(workers); });
  for (std::thread &caller : callers) caller.join();
  bool isRight = true;
  for (uint32_t workers = 1; workers <= 5; ++workers) isRight = visitsAll(workers) && isRight;
  if (!isRight) std::printf("a threadgroup did not run once\n");
  std::printf("%llu of %llu threads ran\n", (unsigned long long)counted, (unsigned long long)expected);
  return counted == expected && expected > 0 && isRight ? 0 : 1;
}
