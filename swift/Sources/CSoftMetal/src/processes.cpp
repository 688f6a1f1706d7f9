#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "softmetal.h"

namespace {

void lower(pid_t process, __rlimit_resource resource, rlim_t most) {
  rlimit limit{};
  if (prlimit(process, resource, nullptr, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  // A second more of processor time for what a program does on the signal.
  limit.rlim_max = std::min(limit.rlim_max, most + 1);
  prlimit(process, resource, &limit, nullptr);
}

}  // namespace

int32_t sm_open_pipe(int32_t ends[2]) { return pipe2(ends, O_CLOEXEC); }

void sm_limit_process(int32_t process, uint64_t seconds, uint64_t bytes) {
  lower(process, RLIMIT_CPU, seconds);
  lower(process, RLIMIT_AS, bytes);
}
