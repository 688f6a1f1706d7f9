/** In the message of an error that a missing compiler is the reason of; one of a lost device has the same code. */
export const needsClang = "compiling shaders needs clang";

/** In the order in which the software device looks for them: the tested one first. */
const versions = [19, 18, 20, 21, 22, 23, 24];

/**
 * The clang that the software device takes: the one that `SOFTMETAL_CLANG` names, else the first of `versions` on the PATH
 * or in the folder of LLVM's own packages, else `clang`.
 */
export function clangPath(): string {
  const named = process.env["SOFTMETAL_CLANG"];
  if (named !== undefined && named !== "") return named;
  const places = versions.flatMap((version) => [`clang-${version}`, `/usr/lib/llvm-${version}/bin/clang`]);
  for (const place of [...places, "clang"]) {
    const path = Bun.which(place);
    if (path !== null) return path;
  }
  throw new Error("no clang on the PATH; scripts/setup installs it");
}
