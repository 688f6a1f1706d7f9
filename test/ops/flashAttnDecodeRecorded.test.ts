import { expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import {
  applyRope,
  type DecodeCache,
  Device,
  flashAttnDecode,
  hadamardQuantizeKv,
  kvCacheBytes,
  kvCacheCopyBatch,
  type Pass,
  type Tensor,
} from "../../src/index.ts";

// A decode step, recorded once and run token after token: rotary positions, the write of K and V, attention. Positions
// and lengths lie in device memory, where a kernel of the step advances them.

const [heads, kvHeads, headDim, capacity, steps] = [4, 2, 64, 1056, 20];
/** Keys before the first step: over 20 steps one sequence goes into a fifth block of 256. */
const starts = [1014, 3] as const;
const batch = starts.length;

const advance = `
  #include <metal_stdlib>
  kernel void advance(device int *positions [[buffer(0)]], device int *lengths [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    positions[i] = lengths[i];
    lengths[i] += 1;
  }`;

type Kind = "f16" | "8 and 4 bits";

/** A layer's tensors, with random keys before `starts`. */
function layer(device: Device, kind: Kind) {
  const f32 = (...shape: number[]) => device.tensor("f32", shape);
  const filled = (seed: number, ...shape: number[]) => {
    const tensor = f32(...shape);
    return tensor.set(normalArray(tensor.length, 1, seed));
  };
  function cache(bits: 8 | 4, seed: number): DecodeCache {
    if (kind === "f16") {
      const rows = device.tensor("f16", [batch, kvHeads, capacity, headDim]);
      return rows.set(normalArray(rows.length, 1, seed));
    }
    const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity, bits });
    const packed = device.tensor("u8", [batch, kvHeads, capacity, bytesPerRow]);
    packed.view().forEach((_, i, codes) => {
      codes[i] = Math.imul(i + seed, 0x9e3779b1) >>> 24;
    });
    return { packed, norms: f32(batch, kvHeads, capacity, normsPerPos).set(normsOf(batch * kvHeads * capacity)), bits };
  }
  const normsOf = (count: number) => new Float32Array(count).fill(Math.sqrt(headDim));
  const [k, v] = [cache(8, 5), cache(4, 6)];
  const q = filled(1, batch, heads, 1, headDim);
  const newK = filled(2, batch, kvHeads, 1, headDim);
  const newV = filled(3, batch, kvHeads, headDim);
  const [turnedQ, turnedK] = [f32(batch, heads, 1, headDim), f32(batch, kvHeads, 1, headDim)];
  const [out, lse] = [f32(batch, heads, 1, headDim), f32(batch, heads, 1)];
  const positions = device.tensor("i32", [batch, 1]);
  const advancing = device.pipeline("advance");
  const seqLens = device.tensor("i32", [batch]).set([...starts]);

  /** The rows of a sequence. */
  const ofSequence = <T extends Tensor>(tensor: T, b: number, shape: readonly number[]): T =>
    tensor.slice(b, b + 1).reshape(shape) as unknown as T;
  const cacheOf = (all: DecodeCache, b: number) => {
    const rows = <T extends Tensor>(tensor: T) => ofSequence(tensor, b, tensor.shape.slice(1));
    return "packed" in all ? { ...all, packed: rows(all.packed), norms: rows(all.norms) } : rows(all);
  };
  const sequences = starts.map((_, b) => ({
    k: { src: ofSequence(turnedK, b, [kvHeads, headDim]), cache: cacheOf(k, b) },
    v: { src: ofSequence(newV, b, [kvHeads, headDim]), cache: cacheOf(v, b) },
  }));

  function write(pass: Pass, b: number, position: number): void {
    const { k: ofK, v: ofV } = sequences[b] as (typeof sequences)[number];
    for (const { src, cache: to } of [ofK, ofV]) {
      if ("packed" in to) hadamardQuantizeKv(pass, { src, ...to, writePos: position });
      else kvCacheCopyBatch(pass, { src, cache: to, seqPos: position });
    }
  }
  return {
    out,
    lse,
    seqLens,
    /** Bytes of everything that a step writes and keeps. */
    bytes: () =>
      [out, lse, ...[k, v].flatMap((all): Tensor[] => ("packed" in all ? [all.packed, all.norms] : [all]))].map(
        ({ bytes }) => Buffer.from(bytes).toString("hex"),
      ),
    /** The next token of each sequence. */
    feed(step: number): void {
      for (const [i, tensor] of [q, newK, newV].entries()) tensor.set(normalArray(tensor.length, 1, 100 * step + i));
    },
    /** A step whose positions and lengths are where the device has them. */
    encode(pass: Pass, places: readonly number[]): void {
      pass.dispatch(advancing, { buffers: [positions, seqLens], grid: batch, threads: batch });
      const streams = { q: { x: q, out: turnedQ }, k: { x: newK, out: turnedK } };
      applyRope(pass, { ...streams, positions, theta: 10_000, pairing: "half" });
      for (const [b, position] of places.entries()) write(pass, b, position);
      flashAttnDecode(pass, { q: turnedQ, k, v, out, lse, seqLens });
    },
    /** The same by numbers that the host has, one sequence after the other. */
    encodeByHost(pass: Pass, places: readonly number[]): void {
      for (const [b, position] of places.entries()) {
        const vectors = (tensor: Tensor<"f32">) => ofSequence(tensor, b, tensor.shape.slice(1));
        const turns = { q: { x: vectors(q), out: vectors(turnedQ) }, k: { x: vectors(newK), out: vectors(turnedK) } };
        applyRope(pass, { ...turns, start: position, theta: 10_000, pairing: "half" });
        write(pass, b, position);
        flashAttnDecode(pass, {
          q: vectors(turnedQ),
          k: cacheOf(k, b),
          v: cacheOf(v, b),
          out: vectors(out),
          lse: ofSequence(lse, b, [heads, 1]),
          seqLen: position + 1,
        });
      }
    },
  };
}

test.each(["f16", "8 and 4 bits"] as const)("a recorded step gives the bits of one encoded anew, over %s", (kind) => {
  using device = Device.open();
  device.registerSource("advance.metal", advance);
  const [recorded, anew, byHost] = [layer(device, kind), layer(device, kind), layer(device, kind)];
  using step = device.record((pass) => {
    const places = starts.map((_, b) => pass.parameter(`position${b}`, { min: 0, max: capacity - 1 }));
    recorded.encode(pass, places);
  });
  // Each operation reads what the one before it wrote; the states of blocks are one of those things.
  const described = step.describe();
  expect(described.at(-2)?.kernel).toStartWith("flash_attn_vec_");
  expect(described.at(-1)?.kernel).toStartWith("flash_attn_vec_reduce_");
  expect(described.slice(-2).map(({ barrierBefore }) => barrierBefore)).toEqual([true, true]);

  const allocated: number[] = [];
  for (let i = 0; i < steps; i++) {
    const positions = starts.map((start) => start + i);
    for (const each of [recorded, anew, byHost]) each.feed(i);
    step.commitAndWait(Object.fromEntries(positions.map((position, b) => [`position${b}`, position])));
    using pass = device.pass();
    anew.encode(pass, positions);
    pass.commitAndWait();
    using other = device.pass();
    byHost.encodeByHost(other, positions);
    other.commitAndWait();
    const bytes = recorded.bytes();
    expect(anew.bytes()).toEqual(bytes);
    expect(byHost.bytes()).toEqual(bytes);
    expect([...recorded.seqLens.view()]).toEqual(positions.map((position) => position + 1));
    allocated.push(device.info.currentAllocatedSize);
  }
  expect(recorded.out.toFloat32Array().every((value) => Number.isFinite(value) && value !== 0)).toBe(true);
  expect(device.info.scratchLength).toBeGreaterThan(0);
  expect(new Set(allocated).size).toBe(1);
});

test("the states of blocks of one call are not taken for those of the next in the same pass", () => {
  using device = Device.open();
  const tensor = (seed: number, ...shape: number[]) => {
    const made = device.tensor("f32", shape);
    return made.set(normalArray(made.length, 1, seed));
  };
  const calls = Array.from({ length: 6 }, (_, i) => ({
    q: tensor(i, heads, 1, headDim),
    k: tensor(10 + i, kvHeads, 600, headDim),
    v: tensor(20 + i, kvHeads, 600, headDim),
    seqLen: 600,
  }));
  const outs = [0, 1].map(() => calls.map(() => device.tensor("f32", [heads, 1, headDim])));
  const [together = [], apart = []] = outs;
  using pass = device.pass();
  for (const [i, call] of calls.entries()) flashAttnDecode(pass, { ...call, out: together[i] as Tensor<"f32"> });
  // All but the first wait: a join for its blocks, the blocks of a call until the join before has read the scratch.
  expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual(calls.flatMap((_, i) => [i > 0, true]));
  pass.commitAndWait();
  for (const [i, call] of calls.entries()) {
    using single = device.pass();
    flashAttnDecode(single, { ...call, out: apart[i] as Tensor<"f32"> });
    single.commitAndWait();
  }
  expect(together.map((out) => out.toFloat32Array())).toEqual(apart.map((out) => out.toFloat32Array()));
});
