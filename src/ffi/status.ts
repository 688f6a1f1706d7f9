import { MetalAttentionError, type MetalAttentionErrorCode } from "../errors.ts";
import { atWork } from "../parameter.ts";
import { Block } from "./block.ts";
import { errorCodes, failureCodes } from "./generated/codes.ts";
import type { Native } from "./library.ts";

/** The codes of metal_attention.h by status. */
const codes = new Map<number, MetalAttentionErrorCode>(
  Object.entries(errorCodes).map(([code, status]) => [status, code as keyof typeof errorCodes]),
);

/** Throws the library's error when `status` is not 0. With it an operation that is recorded ends. */
export function checkStatus(native: Native, status: number): void {
  atWork.recorder?.settle();
  if (status !== 0) throw nativeError(native, status);
}

/** The error for a status: code, argument and message as the library has them of this thread's last failure. */
export function nativeError(native: Native, status: number): MetalAttentionError {
  const message = failure(native, failureCodes.message);
  const code = codes.get(status);
  if (code === undefined) {
    return new MetalAttentionError(
      "abi-mismatch",
      `the native library returned an unknown status ${status}: ${message}`,
    );
  }
  const argument = failure(native, failureCodes.argument);
  return new MetalAttentionError(code, message, argument === "" ? {} : { argument });
}

function failure(native: Native, part: number): string {
  const length = native.ma_last_error(part, null, 0);
  const text = new Block(length + 1);
  native.ma_last_error(part, text.address, length + 1);
  return text.getString(0, length + 1);
}
