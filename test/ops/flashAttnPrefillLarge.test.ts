import { afterAll, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packMAFlashAttnPrefillArgs, structSizes } from "../../src/ffi/generated/structs.ts";
import {
  type AttentionStrides,
  classifyMaskTiles,
  Device,
  flashAttnPrefill,
  float32ToBfloat16,
} from "../../src/index.ts";
import { maxError } from "../../src/reference/index.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, tensorRecord } from "../helpers/abi.ts";

// Offsets beyond 2^31 elements. The memory is not touched but for a few pages,
// and so not there: a fresh buffer is zero without being written.

const device = Device.open();
afterAll(() => device.dispose());

const limit = 2 ** 31;
const headDim = 64;

/** Numbers that bf16 holds exactly, different from row to row. */
const rowValues = (row: number) => Float32Array.from({ length: headDim }, (_, i) => ((row * 7 + i * 3) % 32) / 16 - 1);

const [batch, heads, qL, kL] = [2, 2, 3, 4];
const counts = { q: qL, k: kL, v: kL, out: qL } as const;
const names = ["q", "k", "v", "out"] as const;
type Strides = Readonly<Record<(typeof names)[number] | "mask", AttentionStrides>>;

/** Runs the problem with its tensors at `strides` in buffers just long enough, and gives the rows of the output. */
function runAt(strides: Strides): Uint16Array {
  const scene = new NativeScene();
  try {
    const start = (name: keyof Strides, b: number, head: number, row: number) =>
      b * strides[name].batch + head * strides[name].head + row * strides[name].token;
    const make = (elements: number, dtype: keyof typeof dtypeCodes) => {
      const size = dtype === "bool" ? 1 : 2;
      const bytes = elements * size;
      const { handle, part } = scene.largeBuffer(bytes);
      const record = tensorRecord(handle, dtypeCodes[dtype], 0, bytes);
      return { record, row: (at: number, length: number) => part(at * size, length * size) };
    };
    const last = (name: (typeof names)[number]) => start(name, batch - 1, heads - 1, counts[name] - 1) + headDim;
    const [q, k, v, out] = names.map((name) => make(last(name), "bf16")) as [Made, Made, Made, Made];
    const mask = make(start("mask", batch - 1, heads - 1, qL - 1) + kL, "bool");
    for (let b = 0; b < batch; b++) {
      for (let head = 0; head < heads; head++) {
        for (const [seed, name] of (["q", "k", "v"] as const).entries()) {
          for (let token = 0; token < counts[name]; token++) {
            const values = float32ToBfloat16(rowValues(seed * 100 + b * 20 + head * 10 + token));
            ({ q, k, v })[name].row(start(name, b, head, token), headDim).set(new Uint8Array(values.buffer));
          }
        }
        for (let i = 0; i < qL; i++) {
          const attends = Array.from({ length: kL }, (_, j) => ((i + j + head) % 3 === 0 ? 0 : 1));
          mask.row(start("mask", b, head, i), kL).set(attends);
        }
      }
    }

    const { native } = scene;
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    const params = { B: batch, H: heads, D: headDim, qL, kL, scale: 1 / 8, softcapping: 1, qL_off: 0 };
    const list = (name: keyof Strides) => [strides[name].batch, strides[name].head, strides[name].token];
    packMAFlashAttnPrefillArgs(block, 0, {
      q: q.record,
      k: k.record,
      v: v.record,
      out: out.record,
      mask: mask.record,
      tileClasses: undefined,
      params: { ...params, Q_strides: list("q"), K_strides: list("k"), V_strides: list("v"), O_strides: list("out") },
      maskParams: { M_strides: list("mask") },
      nKvHeads: heads,
      causal: 0,
      ...noAttentionOptions,
    });
    const pass = scene.pass();
    expect([native.ma_flash_attn_prefill(pass, block.bytes), scene.lastError()]).toEqual([0, scene.lastError()]);
    scene.commitAndWait(pass);
    const rows = new Uint16Array(batch * heads * qL * headDim);
    for (let b = 0; b < batch; b++) {
      for (let head = 0; head < heads; head++) {
        for (let i = 0; i < qL; i++) {
          const row = out.row(start("out", b, head, i), headDim).slice();
          rows.set(new Uint16Array(row.buffer), ((b * heads + head) * qL + i) * headDim);
        }
      }
    }
    return rows;
  } finally {
    scene.close();
  }
}

interface Made {
  readonly record: ReturnType<typeof tensorRecord>;
  readonly row: (at: number, length: number) => Uint8Array<ArrayBuffer>;
}

const dense = (tokens: number, size: number) => ({ batch: heads * tokens * size, head: tokens * size, token: size });
const near: Strides = { q: dense(qL, 64), k: dense(kL, 64), v: dense(kL, 64), out: dense(qL, 64), mask: dense(qL, kL) };

test.each(["batch", "head", "token"] as const)(
  "%s strides beyond 2^31 elements",
  (axis) => {
    const expected = runAt(near);
    expect(new Set(expected).size).toBeGreaterThan(100);
    for (const name of [...names, "mask"] as const) {
      // Rows 0 and 2, or the next head or batch, are more than 2^31 elements apart.
      const far = axis === "token" ? limit / 2 + 64 : limit + 64;
      const strides = { ...near, [name]: { ...near[name], [axis]: far } };
      expect([name, runAt(strides)]).toEqual([name, expected]);
    }
  },
  60_000,
);

test("a mask of more than 2^31 elements, and its tile classes", () => {
  const [rowCount, keyCount] = [2 ** 15 + 70, 2 ** 16];
  expect(rowCount * keyCount).toBeGreaterThan(limit);
  using q = device.tensor("bf16", [1, 1, rowCount, headDim]);
  using k = device.tensor("bf16", [1, 1, keyCount, headDim]);
  using v = device.tensor("bf16", [1, 1, keyCount, headDim]);
  using out = device.tensor("bf16", [1, 1, rowCount, headDim]);
  using mask = device.tensor("bool", [rowCount, keyCount]);
  // Equal scores: a row is the mean of the values that it attends.
  const rows = [0, 2 ** 15, rowCount - 1];
  const keys = [3, 100, keyCount - 1];
  for (const row of rows) {
    const flat = mask.slice(row, row + 1);
    const attends = new Uint8Array(flat.bytes.buffer, flat.byteOffset, keyCount);
    for (const key of keys) attends[key] = 1;
    flat.dispose();
  }
  for (const key of keys) {
    using row = v.reshape([keyCount, headDim]).slice(key, key + 1);
    row.set(rowValues(key));
  }
  using pass = device.pass();
  using tileClasses = classifyMaskTiles(pass, { mask, headDim });
  flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses });
  pass.commitAndWait();

  const classes = tileClasses.tensor.view();
  const { queryTile, keyTile } = tileClasses;
  const keyTiles = keyCount / keyTile;
  const tilesWithKeys = keys.map((key) => Math.floor(key / keyTile));
  const mixed = rows.flatMap((row) => tilesWithKeys.map((tile) => Math.floor(row / queryTile) * keyTiles + tile));
  expect(classes.length).toBe(Math.ceil(rowCount / queryTile) * keyTiles);
  expect(mixed.map((tile) => classes[tile])).toEqual(mixed.map(() => 1));
  expect(classes.reduce((sum, value) => sum + value, 0)).toBe(mixed.length);

  const mean = Float32Array.from({ length: headDim }, (_, i) =>
    keys.reduce((sum, key) => sum + (rowValues(key)[i] as number) / keys.length, 0),
  );
  const result = out.toFloat32Array();
  for (const row of rows) {
    expect(maxError(result.subarray(row * headDim, (row + 1) * headDim), mean)).toBeLessThan(2 ** -8);
    result.fill(0, row * headDim, (row + 1) * headDim);
  }
  // Every other row attends nothing.
  expect(result.every((value) => value === 0)).toBe(true);
}, 60_000);
