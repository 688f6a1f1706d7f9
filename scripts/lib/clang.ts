/** The clang that the software device takes where the PATH has it: the one that `SOFTMETAL_CLANG` names, or the newest known. */
export function clangPath(): string {
  const named = process.env["SOFTMETAL_CLANG"];
  if (named !== undefined) return named;
  for (const name of ["clang-19", "clang-18", "clang"]) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  throw new Error("no clang on the PATH; scripts/setup installs it");
}
