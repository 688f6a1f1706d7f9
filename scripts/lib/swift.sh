# shellcheck shell=bash
# The Swift compiler, and clang for the shaders.

swift_minimum=6.0
# What the tests ran with, and the oldest that is taken, untested.
clang_tested=19
clang_minimum=18

# The compiler's version, such as 6.0.3; empty when there is none.
swift_version() {
  swiftc --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1
}

have_swift() { version_at_least "$(swift_version)" "$swift_minimum"; }

# The version of the clang that the library takes; none where there is no usable one.
clang_version() {
  local name
  for name in clang-{19,18,20,21,22,23,24} clang; do
    if command -v "$name" >/dev/null && version_at_least "$("$name" -dumpversion)" "$clang_minimum"; then
      "$name" -dumpversion
      return
    fi
  done
}

have_clang() { [[ -n $(clang_version) ]]; }

say_clang() {
  local version
  version=$(clang_version)
  if [[ ${version%%.*} == "$clang_tested" ]]; then return; fi
  say "clang $version: supported is clang $clang_tested, which the tests ran with. Another one is untested, and runs kernels that use lanes one thread at a time, many times slower."
}

# A compiler that is installed but does not run is reported, not replaced.
check_swift_runs() {
  if ! command -v swiftc >/dev/null || [[ -n $(swift_version) ]]; then return; fi
  stop "$(command -v swiftc) does not say which version it is:
$(swiftc --version 2>&1 | head -n 5)"
}

set_up_swift_on_linux() {
  if have_swift && have_clang; then
    say_clang
    return
  fi
  check_swift_runs
  if is_debian_12_or_13; then
    install_swift_on_debian
  else
    stop "Swift $swift_minimum (found: $(swift_version || true)) and clang $clang_tested are needed; they are installed by themselves only on Debian 12 and 13. Here, run:

    curl -LO https://download.swift.org/swiftly/linux/swiftly-$(uname -m).tar.gz
    tar -xzf swiftly-$(uname -m).tar.gz && ./swiftly init && swiftly install latest

and one of

    sudo apt-get install clang-19 llvm-19-dev libstdc++-14-dev     (Ubuntu 24.04 or newer)
    sudo dnf install clang libstdc++-devel             (Fedora)

then scripts/setup again."
  fi
  have_swift || stop "Swift $swift_minimum or newer is needed, and swiftc on the PATH is $(swift_version || true)."
  have_clang || stop "clang $clang_tested is needed to compile the shaders, and none is on the PATH."
  say_clang
}

set_up_swift_on_macos() {
  if have_swift; then return; fi
  stop "Swift $swift_minimum or newer is needed to build the library (found: $(swift_version || true)). Install Xcode 16 or newer from the App Store, or its command line tools:

    xcode-select --install

then run scripts/setup again."
}

set_up_swift() {
  case $(uname -s) in
    Darwin) set_up_swift_on_macos ;;
    Linux) set_up_swift_on_linux ;;
    *) stop "macOS on Apple silicon and Linux are served; this is $(uname -s)." ;;
  esac
}
