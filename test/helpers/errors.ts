import { expect } from "bun:test";
import { MetalAttentionError, type MetalAttentionErrorCode } from "../../src/index.ts";

/** The MetalAttentionError that `action` throws; fails the test when it throws nothing or something else. */
export function thrownBy(action: () => unknown): MetalAttentionError {
  try {
    action();
  } catch (error) {
    if (error instanceof MetalAttentionError) return error;
    throw new Error(`expected a MetalAttentionError, got ${String(error)}`, { cause: error });
  }
  throw new Error("expected a MetalAttentionError, but nothing was thrown");
}

/** As `thrownBy`, for a promise that must reject. */
export async function rejectionOf(promise: Promise<unknown>): Promise<MetalAttentionError> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  return thrownBy(() => {
    if (outcome !== undefined) throw outcome.error;
  });
}

/** Checks code, argument and that the message holds each of `parts`. */
export function expectRefusal(
  action: () => unknown,
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...parts: (string | number)[]
): void {
  const error = thrownBy(action);
  expect({ code: error.code, argument: error.argument, message: error.message }).toEqual({
    code,
    argument,
    message: error.message,
  });
  for (const part of parts) expect(error.message).toContain(String(part));
}
