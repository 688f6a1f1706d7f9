import { libraryVariable } from "../../src/ffi/library.ts";
import { MetalAttentionError, type MetalAttentionErrorCode } from "../../src/index.ts";

/** Something wrong, and how to mend it. */
export interface Problem {
  readonly what: string;
  readonly mend: string;
}

const report = "report it with the file that --report writes";

/** What to do about layouts that differ. */
export const mendLayouts = `build the library again with scripts/setup, or install package and library of one version; unset ${libraryVariable} if it names an old one`;

/** By the code of an error. */
const mends: Readonly<Partial<Record<MetalAttentionErrorCode, string>>> = {
  "library-not-found": `run scripts/setup in the folder of the package, or name a library in ${libraryVariable}`,
  "abi-mismatch": mendLayouts,
  "device-unavailable":
    "on Linux, install clang 19 or name it in SOFTMETAL_CLANG where the message asks for it, else see the line on standard error that begins with SoftMetal; on a Mac, run in a session that has the GPU (not in a sandbox)",
  "shader-compilation":
    "on Linux, install clang 19 or name it in SOFTMETAL_CLANG; where it is in use, or on a Mac, report it",
  "out-of-memory": "free memory, or close what else uses the GPU",
};

/** An error as a problem. */
export function problemOf(error: unknown): Problem {
  const what = error instanceof Error ? error.message : String(error);
  return { what, mend: mendOf(error instanceof MetalAttentionError ? error.code : undefined) };
}

/** What to do about an error of this code; a result that is wrong, which has none, can only be reported. */
export function mendOf(code: MetalAttentionErrorCode | undefined): string {
  return (code === undefined ? undefined : mends[code]) ?? report;
}
