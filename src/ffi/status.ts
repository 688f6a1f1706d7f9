import { MetalAttentionError, type MetalAttentionErrorCode } from "../errors.ts";
import { Block } from "./block.ts";
import type { Native } from "./library.ts";

/** The codes of metal_attention.h by status: -1 is the first. */
export const statusCodes: readonly MetalAttentionErrorCode[] = [
  "invalid-argument",
  "invalid-handle",
  "invalid-state",
  "buffer-too-small",
  "overflow",
  "unsupported",
  "out-of-memory",
  "shader-compilation",
  "kernel-not-found",
  "device-unavailable",
  "execution",
];

/** Throws the library's error when `status` is not 0. */
export function checkStatus(native: Native, status: number): void {
  if (status !== 0) throw nativeError(native, status);
}

/** The codes whose messages begin with an argument; others begin with a file or a kernel. */
const aboutArguments = new Set<MetalAttentionErrorCode>([
  "invalid-argument",
  "invalid-handle",
  "buffer-too-small",
  "overflow",
  "unsupported",
]);

/** The argument that a message is about follows the name of the function that refused it. */
const leadingArgument = /^ma_\w+: ([a-z]\w*(?:[.[]\w+\]?)*)(?=:| is | and | [0-9])/;

/**
 * The error for a status, with the message of this thread's last failure.
 * `rename` puts the caller's names for arguments that the library names
 * otherwise.
 */
export function nativeError(
  native: Native,
  status: number,
  rename: (message: string) => string = (message) => message,
): MetalAttentionError {
  const message = rename(lastMessage(native));
  const code = statusCodes[-1 - status];
  if (code === undefined) {
    return new MetalAttentionError(
      "abi-mismatch",
      `the native library returned an unknown status ${status}: ${message}`,
    );
  }
  const argument = aboutArguments.has(code) ? leadingArgument.exec(message)?.[1] : undefined;
  return new MetalAttentionError(code, message, argument === undefined ? {} : { argument });
}

function lastMessage(native: Native): string {
  const length = native.ma_last_error(null, 0);
  const text = new Block(length + 1);
  native.ma_last_error(text.address, length + 1);
  return text.getString(0, length + 1);
}
