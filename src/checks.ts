import { MetalAttentionError, type MetalAttentionErrorCode } from "./errors.ts";
import { atWork, Parameter } from "./parameter.ts";

// Checks of the hot path. bun:ffi turns NaN, -1, 2^32 + 5, undefined and a
// missing argument into some integer without a word, so these come first.

export const u32Max = 0xffff_ffff;

/** Returns `value` when it is an integer from 0 to 4294967295, or what stands for a parameter of a recorded pass. */
export function checkU32(value: unknown, argument: string): number {
  if (typeof value !== "number" || value >>> 0 !== value) {
    if (value instanceof Parameter) return value.take(argument);
    throw refused(argument, `expected an integer from 0 to ${u32Max}, got ${display(value)}`);
  }
  return value;
}

/** As {@link checkU32}, where no operation is at work and a parameter means nothing. */
export function checkLength(value: unknown, argument: string): number {
  if (value instanceof Parameter) throw refused(argument, `expected a number, got parameter ${value.name}`);
  return checkU32(value, argument);
}

/** Returns `value`, or `fallback` where it is undefined, as an integer from 0 to 4294967295. */
export function checkOptionalU32(value: unknown, fallback: number, argument: string): number {
  return value === undefined ? fallback : checkU32(value, argument);
}

/** Returns `value` when it is a number above 0 that is positive and finite as f32 too. */
export function checkPositive(value: unknown, argument: string): number {
  if (typeof value !== "number" || !(Math.fround(value) > 0) || !Number.isFinite(Math.fround(value))) {
    throw refused(argument, `expected a positive, finite number, got ${display(value)}`);
  }
  return value;
}

/** Returns `value` when it is a number of keys that a row of attention sees, itself among them. */
export function checkWindow(value: unknown): number {
  // 0 stands for no window in the library.
  if (value instanceof Parameter) return value.take("window", 1);
  const window = checkU32(value, "window");
  if (window === 0) throw refused("window", "0 leaves a row not even its own position; it is at least 1");
  return window;
}

/** Returns 1 for true, 0 for false and undefined. */
export function checkFlag(value: unknown, argument: string): 0 | 1 {
  if (value === true) return 1;
  if (value === false || value === undefined) return 0;
  throw refused(argument, `expected true or false, got ${display(value)}`);
}

/** Returns `value` when it is an object whose fields can be read; of a Map or an array, what it holds would be left out. */
export function checkObject<T extends object>(value: T, argument: string): T {
  if (typeof value !== "object" || value === null) {
    throw refused(argument, `expected an object, got ${display(value)}`);
  }
  if (Symbol.iterator in value) {
    throw refused(
      argument,
      `expected an object with named fields, got ${isArray(value) ? "an array" : "a collection"}`,
    );
  }
  return value;
}

/** Returns `value` when it is a text: a C string ends at its first NUL, so one with a NUL inside would arrive cut. */
export function checkText(value: unknown, argument: string): string {
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw refused(argument, `expected a non-empty string without NUL, got ${display(value)}`);
}

/** Refuses what is no path of a file. */
export function checkPath(path: unknown): void {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw refused("path", `expected that of a file, got ${display(path)}`);
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) {
    throw refused(
      "path",
      `expected that of a file, got the URL ${display(path)}; fileURLToPath makes one of a file: URL`,
    );
  }
}

/** The error for a file that the system does not let be read or written; one of this package's own stays. */
export function failed(path: string, error: unknown): MetalAttentionError {
  if (error instanceof MetalAttentionError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new MetalAttentionError("invalid-argument", `${path}: ${reason}`, { argument: path, cause: error });
}

/** The error for `argument`; `invalid-argument` unless another code is given. */
export function refused(
  argument: string,
  reason: string,
  code: MetalAttentionErrorCode = "invalid-argument",
): MetalAttentionError {
  // What is recorded ends with it.
  atWork.recorder?.settle();
  return new MetalAttentionError(code, `${argument}: ${reason}`, { argument });
}

/** A short rendering of any value for a message; never throws. */
export function display(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
    case "bigint":
      return `${value}n`;
    case "function":
      return "a function";
    case "object":
      return value === null ? "null" : isArray(value) ? "an array" : "an object";
    default:
      return String(value);
  }
}

/** Whether a value is an array; a proxy that was revoked is nothing any more. */
function isArray(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
