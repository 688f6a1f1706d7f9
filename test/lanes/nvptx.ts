/** LLVM's code for NVIDIA GPUs as PTX. */
import { runChecked } from "../helpers/run.ts";

const target = ["--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx78", "-nogpulib"];

/** What clang makes of a file of LLVM's code, with options of its own such as the compiler pass. */
export const compilePtx = (source: string, options: readonly string[]): Promise<string> =>
  runChecked(["clang-19", ...target, "-O3", "-x", "ir", "-S", "-w", ...options, source, "-o", "-"]);
