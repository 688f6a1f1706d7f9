# shellcheck shell=bash
# The compiler pass that makes SIMD groups vectors, built for the clang in use.

lanes_source=$root/swift/Sources/CSoftMetal/lanes

# The folder of the LLVM that clang-VERSION belongs to, where its headers are.
lanes_headers() {
  local folder
  folder=$(llvm-config-"$1" --includedir 2>/dev/null) || folder=/usr/lib/llvm-$1/include
  [[ -f $folder/llvm/Passes/PassPlugin.h ]] && printf '%s\n' "$folder"
}

# build_lanes FOLDER: softmetal-lanes-VERSION.so, where a clang has its headers beside it and the file is out of date.
# Without them kernels that use lanes run one thread at a time.
build_lanes() {
  local version=19 headers target=$1 wanted
  if ! command -v "clang++-$version" >/dev/null || ! headers=$(lanes_headers "$version"); then
    say "    No headers of LLVM $version (llvm-$version-dev): kernels that use lanes run one thread at a time."
    return 0
  fi
  wanted=$({
    cat "$lanes_source"/*.cpp "$lanes_source"/*.hpp "${BASH_SOURCE[0]}"
    cksum "$(command -v "clang++-$version")"
  } | digest)
  local library=$target/softmetal-lanes-$version.so stamp=$build/lanes.sha256
  if [[ -f $stamp && $(<"$stamp") == "$wanted" && -f $library ]]; then return 0; fi
  mkdir -p "$target"
  # In a subshell, so that a failure ends only that: the library works without the pass.
  if ! (progress "compiler pass for SIMD groups" lanes compile_lanes "$version" "$headers" "$target/.lanes.$$"); then
    say "    The compiler pass for SIMD groups could not be built: they run one thread at a time."
    rm -f "$target/.lanes.$$" "$library" "$stamp"
    return 0
  fi
  mv -f "$target/.lanes.$$" "$library"
  printf '%s\n' "$wanted" >"$stamp"
}

# As one unit: reading LLVM's headers is what takes time.
compile_lanes() {
  printf '#include "%s"\n' "$lanes_source"/*.cpp |
    "clang++-$1" -x c++ -std=c++17 -O1 -fPIC -shared -fno-rtti -fexceptions -fvisibility=hidden -DNDEBUG \
      -Wall -Wextra -Wno-unused-parameter -I "$lanes_source" -isystem "$2" -s - -o "$3"
}
