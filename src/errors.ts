/**
 * What went wrong, as a literal that code can switch on.
 *
 * - `invalid-argument`: a value outside its documented range, type or shape
 * - `invalid-handle`: an object of another device, or one the library no longer knows
 * - `invalid-state`: for example an operation encoded after `commit()`
 * - `buffer-too-small`: an extent leaves its tensor
 * - `overflow`: a product or a sum is too large, or a linear cache is full
 * - `unsupported`: no kernel serves this combination; the message lists those served
 * - `out-of-memory`: the device could not allocate
 * - `shader-compilation`: the message holds the compiler's log
 * - `kernel-not-found`: the message lists the known names
 * - `device-unavailable`: no device, or it cannot run kernels
 * - `execution`: the device reported an error while it ran a pass
 * - `abi-mismatch`: the native library is of another version than this package
 * - `library-not-found`: no usable native library; the message lists every place
 * - `disposed`: the object, or the device it belongs to, was disposed
 */
export type MetalAttentionErrorCode =
  | "invalid-argument"
  | "invalid-handle"
  | "invalid-state"
  | "buffer-too-small"
  | "overflow"
  | "unsupported"
  | "out-of-memory"
  | "shader-compilation"
  | "kernel-not-found"
  | "device-unavailable"
  | "execution"
  | "abi-mismatch"
  | "library-not-found"
  | "disposed";

/** What an error carries beside its code and message. */
interface MetalAttentionErrorDetails {
  /** Name of the argument at fault, as the caller wrote it. */
  readonly argument?: string | undefined;
  /** The error underneath. */
  readonly cause?: unknown | undefined;
}

const errorKey: unique symbol = Symbol.for("metal-attention.error");

/**
 * The only error that this package throws on purpose. The message is that of
 * the layer that refused. A refused call has encoded and written nothing.
 *
 * @example
 * try {
 *   kvCacheCopy(pass, { src, cache, writePos: 4096 });
 * } catch (error) {
 *   if (error instanceof MetalAttentionError && error.code === "overflow") growCache();
 *   else throw error;
 * }
 */
export class MetalAttentionError extends Error {
  override readonly name = "MetalAttentionError";
  /** What went wrong. */
  readonly code: MetalAttentionErrorCode;
  /** The argument at fault, where one can be named. */
  declare readonly argument?: string;

  constructor(code: MetalAttentionErrorCode, message: string, details?: MetalAttentionErrorDetails | null) {
    super(message, details?.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    // No property at all where there is none, so that a printed error has no empty line.
    if (details?.argument !== undefined) this.argument = details.argument;
  }

  /** Marks errors for `instanceof`. */
  get [errorKey](): true {
    return true;
  }

  /** Also true of an error that a former evaluation of this module made, as `bun --hot` leaves them behind. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a class derived from this one has instances of its own
    if (this !== MetalAttentionError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return value instanceof Error && (value as { readonly [errorKey]?: unknown })[errorKey] === true;
  }
}
