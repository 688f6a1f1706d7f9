import { dlopen, type Library } from "bun:ffi";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { version } from "../../package.json";
import { refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { argumentNames } from "./argumentNames.ts";
import { abiVersion, symbols } from "./generated/symbols.ts";
import { hasPlatformPackage, libraryFile, platformLibrary, platformPackage } from "./platformPackage.ts";
import { checkStatus } from "./status.ts";
import { encodeText } from "./text.ts";

/** The functions of the loaded native library, by their C names. */
export type Native = Library<typeof symbols>["symbols"];

/** Names the library file to load in place of the one found by search. */
export const libraryVariable = "METAL_ATTENTION_LIBRARY";

/** A file that may be the library, and what made it a candidate. */
interface Candidate {
  readonly path: string;
  readonly reason: string;
  /** Named by the user, so that no other may take its place. */
  readonly chosen: boolean;
  /** Why it cannot be used, where that is known already. */
  readonly fault?: string | undefined;
}

/** The package's own folder, which may be a checkout; undefined where a bundler has put this module into another file. */
const root = import.meta.path.endsWith("/src/ffi/library.ts") ? join(import.meta.dir, "../..") : undefined;

const loaded = new Map<string, Native>();

/** A file by its path, or by a URL as a bundler gives it: `new URL(imported, import.meta.url)`. */
type FileName = string | URL;

/** Kernels by their file, in memory that the library reads from now on. */
const provided = new Map<string, Uint8Array>();

/** What a search for the library found. */
interface LibrarySearch {
  /** Undefined where no place had it. */
  readonly native: Native | undefined;
  /** One line for each place searched, in order: the file, why it was a candidate, and the outcome. */
  readonly places: readonly string[];
  /** What is wrong with a library that was found, but is of another version. */
  readonly mismatch: MetalAttentionError | undefined;
}

/**
 * Loads the native library, once per file. A given `path` decides alone, then
 * `METAL_ATTENTION_LIBRARY`; without both, the first usable one of platform
 * package and local build is taken.
 *
 * Errors: `library-not-found` with every place and what was wrong with it;
 * `abi-mismatch` with both version numbers.
 */
export function loadLibrary(file?: FileName): Native {
  const { native, places, mismatch } = searchLibrary(file);
  if (native === undefined) throw mismatch ?? notFound(places);
  return native;
}

/**
 * Has the library take the built-in kernels that a program carries, once per file.
 *
 * Errors: `invalid-argument` for a file that cannot be read, or has no kernels.
 */
export function provideKernels(native: Native, file: FileName): void {
  const path = pathOf(file);
  if (provided.has(path)) return;
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new MetalAttentionError("invalid-argument", `options.kernels: ${reason}`, {
      argument: "options.kernels",
      cause,
    });
  }
  if (bytes.length === 0) throw refused("options.kernels", `${path} is empty`);
  checkStatus(native, native.ma_kernels_provide(bytes, BigInt(bytes.length)));
  provided.set(path, bytes);
}

function pathOf(file: FileName): string {
  return typeof file === "string" ? resolve(file) : fileURLToPath(file);
}

/** The library in use: the first that was loaded, or the one that a search finds. */
export function anyLibrary(): Native {
  const [first] = loaded.values();
  return first ?? loadLibrary();
}

/** As {@link loadLibrary}, without errors: what came of each place. */
export function searchLibrary(file?: FileName): LibrarySearch {
  const lines: string[] = [];
  let native: Native | undefined;
  let mismatch: MetalAttentionError | undefined;
  let decided: string | undefined;
  for (const candidate of places(file)) {
    const place = `${candidate.path} (${candidate.reason})`;
    if (decided !== undefined) {
      lines.push(`${place}: not tried, because of ${decided}`);
      continue;
    }
    const found = tryLoad(candidate);
    if (typeof found === "string") lines.push(found);
    else if (found instanceof MetalAttentionError) {
      mismatch = found;
      lines.push(`${place}: ${found.message}`);
    } else {
      native = found;
      lines.push(`${place}: loaded`);
    }
    // A chosen file that does not work, or one of another version, must not be replaced by another in silence.
    if (candidate.chosen || typeof found !== "string") decided = candidate.reason;
  }
  return { native, places: lines, mismatch };
}

/** Where the library may be, in order. */
function places(file: FileName | undefined): Candidate[] {
  const list: Candidate[] = [];
  if (file !== undefined) list.push({ path: pathOf(file), reason: "option library", chosen: true });
  const variable = process.env[libraryVariable];
  if (variable) list.push({ path: resolve(variable), reason: libraryVariable, chosen: true });
  list.push({ ...platformLibrary(), reason: "platform package", chosen: false });
  if (root !== undefined) {
    list.push({ path: join(root, "build/lib", libraryFile), reason: "local build", chosen: false });
  }
  return list;
}

/** The library, a line that says why this candidate is not it, or the error where it is one of another version. */
function tryLoad({ path, reason, fault }: Candidate): Native | string | MetalAttentionError {
  const known = loaded.get(path);
  if (known !== undefined) return known;
  const place = `${path} (${reason})`;
  if (fault !== undefined) return `${place}: ${fault}`;
  if (!existsSync(path)) return `${place}: no such file`;
  try {
    const native = open(path);
    native.ma_name_arguments(encodeText(argumentNames).block.bytes);
    loaded.set(path, native);
    return native;
  } catch (error) {
    if (error instanceof MetalAttentionError) return error;
    return `${place}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** All functions at once, since a file inside a program is unpacked for each `dlopen`. */
function open(path: string): Native {
  try {
    const native = dlopen(path, symbols).symbols;
    checkVersion(path, native.ma_abi_version());
    return native;
  } catch (error) {
    if (error instanceof MetalAttentionError) throw error;
    // A library of another version may lack functions.
    const { ma_abi_version } = symbols;
    checkVersion(path, dlopen(path, { ma_abi_version }).symbols.ma_abi_version());
    throw error;
  }
}

function checkVersion(path: string, found: number): void {
  if (found === abiVersion) return;
  const build = root === undefined ? "" : `, or build it with ${join(root, "scripts/setup")}`;
  throw new MetalAttentionError(
    "abi-mismatch",
    `${path} has ABI version ${found}, this package needs ${abiVersion}: use the library of version ${version}${build}`,
  );
}

function notFound(failures: readonly string[]): MetalAttentionError {
  const lines = failures.map((failure) => `  ${failure}`).join("\n");
  return new MetalAttentionError(
    "library-not-found",
    `no usable native library; looked at:\n${lines}\n${root === undefined ? bundleAdvice() : installAdvice(root)}`,
  );
}

function installAdvice(folder: string): string {
  const install = hasPlatformPackage ? `, install ${platformPackage} beside metal-attention` : "";
  return `Build it with ${join(folder, "scripts/setup")}${install}, or name a file in ${libraryVariable}.`;
}

/** A bundle has the modules of this package alone. */
function bundleAdvice(): string {
  const name = hasPlatformPackage ? platformPackage : "the platform package";
  return (
    `This program is a bundle, which carries the library where it imports it:\n` +
    `  import { files } from "${name}/files.js";\n` +
    `  Device.open(files);\n` +
    `Or name a file in ${libraryVariable}.`
  );
}
