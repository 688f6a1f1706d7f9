# shellcheck shell=bash
# The run of `scripts/test --sanitize nvidia`: compute-sanitizer's four tools over every operation on an NVIDIA GPU, and
# over kernels with planted mistakes. `runner` is scripts/test's.

require_device_sanitizer() {
  command -v compute-sanitizer >/dev/null ||
    stop "compute-sanitizer is not on the PATH; it comes with the CUDA toolkit, in its bin folder."
}

sanitize_device_tests() {
  # A process for all of it, which keeps every core busy; its closing lines are those of bun test.
  runner bun sanitize-nvidia bun test/sanitize/device.ts
}
