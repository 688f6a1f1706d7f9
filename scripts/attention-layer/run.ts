import { type Device, kvCacheCopyBatch, kvCacheCopySeq, type Pass, type Tensor } from "../../src/index.ts";
import type { Progress } from "../lib/progress.ts";
import { type BuiltMask, encodeChunks, encodeMask, encodeWhole } from "./attention.ts";
import type { AttentionChoice, AttentionDType, KeyValue } from "./choice.ts";
import { decodeTokens, type LayerInputs, ringSlots } from "./inputs.ts";
import { encodeReadBack, encodeWrite, makeRoundTrip, type RoundTrip } from "./round-trip.ts";

/** A row of the table. Times in seconds. */
export interface Step {
  readonly name: string;
  readonly kernel: string;
  readonly dispatches: number;
  /** Read and written, each tensor counted once. */
  readonly bytes: number;
  /** Spent in this process: checking, packing and encoding, or computing. */
  readonly hostTime: number;
  /** From the device's start to its end; absent where it took no part. */
  readonly deviceTime?: number;
}

/** What the layer made. The tensors belong to the device. */
export interface LayerResults {
  readonly steps: readonly Step[];
  /** Attention output, [1, tokens, heads, headDim]. */
  readonly out: Tensor<AttentionDType>;
  /** The same of the prompt in chunks, where that was asked for. */
  readonly chunked: Tensor<AttentionDType> | undefined;
  /** K and V of every token of the prompt, f16 [kvHeads, tokens, headDim]. */
  readonly cache: KeyValue<"f16">;
  /** K and V of the last tokens, f16 [kvHeads, ringSlots, headDim]; position p in slot p mod ringSlots. */
  readonly ring: KeyValue<"f16">;
  /** K and V of the prompt in another format, where that was asked for. */
  readonly roundTrip: RoundTrip | undefined;
}

/** The tensors of the layer. */
type LayerTensors = ReturnType<typeof makeTensors>;

/** A row of the table that is yet to run. */
type Work = readonly [name: string, bytes: number, encode: (pass: Pass) => void];

/** Runs the layer: prefill, the prompt into cache and ring, the decode tokens into the ring. */
export function runLayer(
  device: Device,
  inputs: LayerInputs,
  choice: AttentionChoice,
  progress: Progress,
): LayerResults {
  const tensors = makeTensors(device, inputs, choice);
  const uploaded = upload(tensors, inputs, progress);
  const work = workOf(device, inputs, choice, tensors);
  const compiled = compile(device, work, progress);
  const run = work.map((row) => runStep(device, row, progress));
  const { out, chunked, cache, ring, roundTrip } = tensors;
  return { steps: [uploaded, compiled, ...run], out, chunked, cache, ring, roundTrip };
}

function makeTensors(device: Device, inputs: LayerInputs, { dtype, chunk, kv }: AttentionChoice) {
  const { tokens, heads, kvHeads, headDim } = inputs;
  const keyValue = <T extends "f32" | "f16" | "bf16">(dtype: T, shape: readonly number[]): KeyValue<T> => ({
    k: device.tensor(dtype, shape),
    v: device.tensor(dtype, shape),
  });
  const shape = [1, tokens, heads, headDim];
  return {
    q: device.tensor(dtype, shape),
    out: device.tensor(dtype, shape),
    chunked: chunk === undefined ? undefined : device.tensor(dtype, shape),
    /** K and V of the prompt, as attention reads them. */
    attended: keyValue(dtype, [1, tokens, kvHeads, headDim]),
    /** Those of the prompt and of the decode tokens. */
    all: keyValue("f32", [tokens + decodeTokens, kvHeads, headDim]),
    cache: keyValue("f16", [kvHeads, tokens, headDim]),
    ring: keyValue("f16", [kvHeads, ringSlots, headDim]),
    roundTrip: kv === undefined ? undefined : makeRoundTrip(device, kv, dtype, inputs),
  };
}

function upload({ q, attended, all }: LayerTensors, inputs: LayerInputs, progress: Progress): Step {
  const name = "q, k, v to the device";
  const start = performance.now();
  progress.run(name, () => {
    q.set(inputs.q);
    attended.k.set(inputs.k.subarray(0, attended.k.length));
    attended.v.set(inputs.v.subarray(0, attended.v.length));
    all.k.set(inputs.k);
    all.v.set(inputs.v);
  });
  return {
    name,
    kernel: "",
    dispatches: 0,
    bytes: bytesOf([q, attended.k, attended.v, all.k, all.v]),
    hostTime: (performance.now() - start) / 1000,
  };
}

/** What the layer encodes, in the order in which it runs. */
function workOf(device: Device, inputs: LayerInputs, choice: AttentionChoice, tensors: LayerTensors): Work[] {
  const { tokens, kvHeads, headDim } = inputs;
  const { q, out, chunked, attended, all, cache, ring, roundTrip } = tensors;
  const attention = { q, ...attended };
  const prompt = { k: all.k.slice(0, tokens), v: all.v.slice(0, tokens) };
  // A ring keeps the end of a longer prompt.
  const ringStart = Math.max(0, tokens - ringSlots);
  const decoded = Array.from({ length: decodeTokens }, (_, i) => ({
    position: tokens + i,
    k: token(all.k, tokens + i),
    v: token(all.v, tokens + i),
  }));
  const rowBytes = kvHeads * headDim * (4 + 2) * 2;
  const prefillBytes = bytesOf([q, attended.k, attended.v, out]);

  let built: BuiltMask | undefined;
  const work: Work[] = [];
  if (choice.mask !== "none") {
    const maskBytes = tokens * tokens * (choice.mask === "bool" ? 1 : 2);
    const buildMask = (pass: Pass) => {
      built = encodeMask(pass, device, choice, headDim, 0, tokens);
    };
    work.push(["mask and its tile classes", 2 * maskBytes, buildMask]);
  }
  work.push(
    ["causal prefill", prefillBytes, (pass) => encodeWhole(pass, attention, out, built)],
    ["K and V into the cache", tokens * rowBytes, (pass) => promptToCache(pass, prompt, cache)],
    [
      "the prompt's end into the ring",
      (tokens - ringStart) * rowBytes,
      (pass) => promptToRing(pass, prompt, ring, ringStart),
    ],
    [
      `${decodeTokens} decode tokens into the ring`,
      decodeTokens * rowBytes,
      (pass) => decodeToRing(pass, decoded, ring),
    ],
  );
  const { chunk } = choice;
  if (chunk !== undefined && chunked !== undefined) {
    const encode = (pass: Pass) => encodeChunks(pass, device, choice, chunk, attention, chunked);
    work.push([`prefill in chunks of ${chunk}`, prefillBytes, encode]);
  }
  if (roundTrip !== undefined) {
    const { readBack, cost } = roundTrip;
    const name = roundTrip.cache.codes === undefined ? roundTrip.format : `${roundTrip.format} bits`;
    const attend = (pass: Pass) => encodeWhole(pass, { q, ...readBack }, roundTrip.out, built, roundTrip.layout);
    work.push(
      [
        `K and V into ${name}`,
        bytesOf([prompt.k, prompt.v]) + cost.total,
        (pass) => encodeWrite(pass, roundTrip, prompt),
      ],
      [`${name} read back`, cost.total + bytesOf([readBack.k, readBack.v]), (pass) => encodeReadBack(pass, roundTrip)],
      ["prefill over what was read back", prefillBytes, attend],
    );
  }
  return work;
}

function promptToCache(pass: Pass, prompt: KeyValue<"f32">, cache: KeyValue<"f16">): void {
  kvCacheCopySeq(pass, {
    k: { src: prompt.k, cache: cache.k },
    v: { src: prompt.v, cache: cache.v },
    seqPosStart: 0,
  });
}

/** The tokens of the prompt from position `start` on. */
function promptToRing(pass: Pass, prompt: KeyValue<"f32">, ring: KeyValue<"f16">, start: number): void {
  kvCacheCopySeq(pass, {
    k: { src: prompt.k, cache: ring.k },
    v: { src: prompt.v, cache: ring.v },
    seqPosStart: start,
    isSliding: true,
    srcTokOffset: start,
  });
}

/** A token, f32 [kvHeads, headDim], and where it goes. */
interface PlacedToken extends KeyValue<"f32"> {
  readonly position: number;
}

function decodeToRing(pass: Pass, decoded: readonly PlacedToken[], ring: KeyValue<"f16">): void {
  for (const { position, k, v } of decoded) {
    kvCacheCopyBatch(pass, {
      k: { src: k, cache: ring.k },
      v: { src: v, cache: ring.v },
      seqPos: position,
      isSliding: true,
    });
  }
}

/** Encodes everything into a pass that never runs, so that the first compile of a kernel has a row of its own. */
function compile(device: Device, work: readonly Work[], progress: Progress): Step {
  using pass = device.pass();
  const start = performance.now();
  progress.run("compiling the shaders (kept for the next run)", () => {
    for (const [, , encode] of work) encode(pass);
  });
  return {
    name: "shaders compiled or loaded",
    kernel: "",
    dispatches: 0,
    bytes: 0,
    hostTime: (performance.now() - start) / 1000,
  };
}

function runStep(device: Device, [name, bytes, encode]: Work, progress: Progress): Step {
  using pass = device.pass();
  const start = performance.now();
  encode(pass);
  const hostTime = (performance.now() - start) / 1000;
  progress.run(name, () => pass.commitAndWait());
  const dispatches = pass.describe();
  const kernels = [...new Set(dispatches.map(({ kernel }) => kernel))];
  return {
    name,
    kernel: kernels.join(", "),
    dispatches: dispatches.length,
    bytes,
    hostTime,
    deviceTime: pass.info.gpuTime,
  };
}

/** Row `index` of [tokens, heads, headDim], as [heads, headDim]. */
function token<T extends "f32">(values: Tensor<T>, index: number): Tensor<T> {
  using row = values.slice(index, index + 1);
  return row.reshape(values.shape.slice(1));
}

function bytesOf(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
