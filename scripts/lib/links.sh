# shellcheck shell=bash
# The symbolic links of the source tree. npm's archives carry none, so the build
# of an installed package makes them again.

# Link and target, from the root.
source_links="
shaders/ShaderTypes.h                       ../swift/Sources/CMetalAttention/include/ShaderTypes.h
swift/Sources/CSoftMetal/msl/softmetal.h    ../include/softmetal.h
swift/Sources/CSoftMetal/msl/softmetal_worker.h ../include/softmetal_worker.h
swift/Sources/MetalAttention/Shaders        ../../../shaders
swift/Sources/SoftMetal/Headers             ../CSoftMetal/msl
swift/Sources/SoftMetal/OpenCLHeaders       ../CSoftMetal/opencl
"

restore_links() {
  local link target
  while read -r link target; do
    if [[ -n $link && ! -e $root/$link ]]; then ln -sfn "$target" "$root/$link"; fi
  done <<<"$source_links"
}
