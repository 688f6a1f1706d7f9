# shellcheck shell=bash
# The run of `scripts/test --sanitize`, on Linux: the library and the C++ runtime under AddressSanitizer and
# UndefinedBehaviorSanitizer, called from Bun; the device's threads under ThreadSanitizer, by the Swift tests.
# `runner` is scripts/test's.

sanitized=$build/sanitize

# Swift's own folder of tools has a clang, with the sanitizers' runtimes.
swift_tools() { dirname "$(readlink -f "$(command -v swiftc)")"; }

# Swift has no UndefinedBehaviorSanitizer: its own checks stay in a debug build. C and C++ get it.
build_with_address_sanitizer() {
  swift build --package-path swift --scratch-path "$sanitized/address" --product MetalAttention \
    --sanitize=address -Xcxx -fsanitize=undefined -Xcxx -fno-sanitize-recover=undefined \
    -Xcc -fsanitize=undefined -Xcc -fno-sanitize-recover=undefined "$@"
}

build_with_thread_sanitizer() {
  swift build --package-path swift --scratch-path "$sanitized/thread" --sanitize=thread --build-tests
}

# with_address_sanitizer COMMAND...: with the sanitized library, and the sanitizer's runtime loaded before all else.
# Bun keeps memory at its end, and kernels have stacks of their own.
with_address_sanitizer() {
  local library
  library=$(build_with_address_sanitizer --show-bin-path)/libMetalAttention.so
  LD_PRELOAD=$("$(swift_tools)/clang" -print-file-name="libclang_rt.asan-$(uname -m).so") \
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 \
    UBSAN_OPTIONS=print_stacktrace=1 METAL_ATTENTION_LIBRARY=$library SOFTMETAL_GUARD=1 "$@"
}

# build_pool NAME SANITIZERS: the pool of worker threads alone, driven by pool.cpp and by faults.cpp of test/sanitize.
build_pool() {
  local runtime program
  runtime=$(swift_tools)/../lib/swift/linux
  mkdir -p "$sanitized"
  # Swift's ThreadSanitizer follows libdispatch.
  for program in pool faults; do
    "$(swift_tools)/clang++" -std=c++17 -O1 -g "-fsanitize=$2" -fno-sanitize-recover=all \
      -I swift/Sources/CSoftMetal/include swift/Sources/CSoftMetal/src/*.cpp "test/sanitize/$program.cpp" \
      -L "$runtime" -ldispatch -lBlocksRuntime "-Wl,-rpath,$runtime" -o "$sanitized/$program-$1"
  done
}

sees_race() {
  local report
  if report=$("$sanitized/pool-thread" race 2>&1); then
    echo "the planted race went unseen"
    return 1
  fi
  grep -F 'WARNING: ThreadSanitizer: data race' <<<"$report"
}

# ThreadSanitizer holds a signal back until the thread calls into the system, which a kernel that never ends does not:
# the test of the time limit is left out.
test_threads() {
  TSAN_OPTIONS=halt_on_error=1:suppressions=$root/test/sanitize/tsan.txt swift test --package-path swift --scratch-path "$sanitized/thread" \
    --sanitize=thread --skip-build --filter '(SoftMetalTests\.(Queue|Order|CommandBuffer)|MetalAttentionTests\.Sharing)Tests' \
    --skip aKernelThatDoesNotEndIsStopped
}

sanitize_tests() {
  runner status build-pool-address build_pool address address,undefined
  runner status pool-address env ASAN_OPTIONS=detect_stack_use_after_return=0 "$sanitized/pool-address"
  runner status faults-address env ASAN_OPTIONS=detect_stack_use_after_return=0 "$sanitized/faults-address"
  runner status build-pool-thread build_pool thread thread
  runner status pool-thread "$sanitized/pool-thread"
  runner status faults-thread "$sanitized/faults-thread"
  runner status planted-race sees_race
  runner status build-address build_with_address_sanitizer
  runner status planted-overflow with_address_sanitizer bun test/sanitize/planted.ts
  runner bun address-tests with_address_sanitizer bun test test/ffi test/device --timeout 120000
  runner status address-fuzz with_address_sanitizer bun run fuzz --seconds 60 --seed 1
  runner status build-thread build_with_thread_sanitizer
  runner swift thread-tests test_threads
}
