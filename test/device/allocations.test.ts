import { describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { Device, kvCacheCopy, kvCacheCopyBatch, MetalAttentionError } from "../../src/index.ts";

// SOFTMETAL_FAIL makes one allocation of a device fail. A session must get its error there, and nowhere else, and
// come to the same result when it tries that step again.

const rows = [1, 2, 3, 4, 5, 6, 7, 8];
const doubled = `#include <metal_stdlib>
using namespace metal;
kernel void double_all(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }
kernel void negate_all(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = -x[i]; }`;

function isSoftware(): boolean {
  using device = Device.open();
  return device.info.backend === "SoftMetal";
}

/** What a step does again when it fails: all steps of a session allocate. */
type Attempt = <T>(step: () => T) => T;

/**
 * Copies rows into two caches and changes them, in three passes: 3 buffers, 4 pipelines (two of the user's, two of
 * operations), 3 command buffers, 3 encoders.
 */
function session(device: Device, attempt: Attempt): number[] {
  device.registerSource("doubled.metal", doubled);
  const src = attempt(() => device.tensor("f32", [2, 4])).set(rows);
  const cache = attempt(() => device.tensor("f32", [3, 4]));
  const heads = attempt(() => device.tensor("f32", [2, 1, 4]));
  const double = attempt(() => device.pipeline("double_all"));
  const negate = attempt(() => device.pipeline("negate_all"));

  const copying = attempt(() => device.pass());
  attempt(() => kvCacheCopy(copying, { src, cache, writePos: 1 }));
  attempt(() => kvCacheCopyBatch(copying, { src, cache: heads, seqPos: 0 }));
  expect(copying.info.dispatches).toBe(2);
  copying.commitAndWait();
  for (const [pipeline, tensor] of [
    [double, cache],
    [negate, heads],
  ] as const) {
    const changing = attempt(() => device.pass());
    changing.dispatch(pipeline, { buffers: { 0: tensor }, grid: tensor.view().length, threads: 4 });
    changing.commitAndWait();
  }
  return [...cache.toFloat32Array(), ...heads.toFloat32Array()];
}

const expected = [0, 0, 0, 0, ...rows.map((value) => 2 * value), ...rows.map((value) => -value)];

/** A session whose failed steps are repeated once, with the errors it met. */
function failing(kind: string, number: number): { errors: MetalAttentionError[]; result: number[] } {
  using device = openWith({ SOFTMETAL_FAIL: `${kind}:${number}` });
  const errors: MetalAttentionError[] = [];
  const result = session(device, (step) => {
    try {
      return step();
    } catch (error) {
      if (!(error instanceof MetalAttentionError)) throw error;
      errors.push(error);
      return step();
    }
  });
  return { errors, result };
}

const cases = [
  { kind: "buffer", allocations: 3, code: "out-of-memory", message: /could not allocate a buffer of (32|48) bytes/ },
  { kind: "pipeline", allocations: 4, code: "device-unavailable", message: /no memory for its pipeline/ },
  { kind: "pass", allocations: 3, code: "out-of-memory", message: /could not make a command buffer/ },
  { kind: "encoder", allocations: 3, code: "out-of-memory", message: /could not make a command buffer/ },
] as const;

// An Apple GPU has no such switch.
describe.each(isSoftware() ? cases : [])(
  "no memory for allocation of kind $kind",
  ({ kind, allocations, code, message }) => {
    const numbers = Array.from({ length: allocations }, (_, i) => i + 1);

    test.each(numbers)("is the step's error, and the session goes on: number %d", (number) => {
      const { errors, result } = failing(kind, number);
      expect(errors.map((error) => error.code)).toEqual([code]);
      expect(errors[0]?.message).toMatch(message);
      expect(result).toEqual(expected);
    });

    test("was every one of the session", () => {
      const { errors, result } = failing(kind, allocations + 1);
      expect(errors).toEqual([]);
      expect(result).toEqual(expected);
    });
  },
);
