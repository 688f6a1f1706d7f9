import { expect } from "bun:test";
import { type NativeBuffer, type NativeScene, statusCodes } from "./abi.ts";

/** A call of the C ABI that must be refused. */
export interface AbiRefusal {
  readonly name: string;
  readonly status: keyof typeof statusCodes;
  /** The argument at fault, as the package names it. */
  readonly argument: string;
  /** Numbers and words that the message must hold beside it. */
  readonly says: readonly (string | number)[];
}

/** Checks that `send` is refused, with nothing encoded into `pass` and nothing written to `buffers`. */
export function expectRefused(
  scene: NativeScene,
  pass: number,
  buffers: readonly NativeBuffer[],
  { status, argument, says }: AbiRefusal,
  send: () => number,
): void {
  const before = buffers.map(({ bytes }) => bytes.slice());
  const result = send();
  const { message, argument: found } = scene.lastFailure();
  expect({ result, argument: found, message }).toEqual({ result: statusCodes[status], argument, message });
  for (const word of [argument, ...says]) expect(message).toContain(String(word));
  expect(scene.describe(pass)).toEqual([]);
  expect(buffers.map(({ bytes }) => bytes)).toEqual(before);
}

/** Checks that a call succeeded; where it did not, shows why. */
export function expectOk(scene: NativeScene, status: number): void {
  expect([status, status === statusCodes.ok ? undefined : scene.lastError()]).toEqual([statusCodes.ok, undefined]);
}
