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
    "on a Mac, run in a session that has the GPU (not in a sandbox); on Linux, see what the message says, and the line on standard error that begins with SoftMetal",
  "shader-compilation":
    "on Linux, install clang 19 or name it in SOFTMETAL_CLANG; where it is in use, or on a Mac, report it",
  "out-of-memory": "free memory, or close what else uses the GPU",
};

/** An error as a problem. */
export function problemOf(error: unknown): Problem {
  const what = error instanceof Error ? error.message : String(error);
  const mend = error instanceof MetalAttentionError ? mends[error.code] : undefined;
  return { what, mend: mend ?? report };
}

/** A result that is wrong can only be reported; a shader that did not compile may lack a compiler. */
export function mendOf(fault: string): string {
  return /clang|compil/i.test(fault) ? (mends["shader-compilation"] ?? report) : report;
}
