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

/** Runs the layer: prefill, the prompt into cache and ring, the decode tokens into the ring. */
export function runLayer(
  device: Device,
  inputs: LayerInputs,
  choice: AttentionChoice,
  progress: Progress,
): LayerResults {
  const { tokens, heads, kvHeads, headDim } = inputs;
  const steps: Step[] = [];
  const keyValue = <T extends "f32" | "f16" | "bf16">(dtype: T, shape: readonly number[]): KeyValue<T> => ({
    k: device.tensor(dtype, shape),
    v: device.tensor(dtype, shape),
  });
  const { dtype, chunk, kv } = choice;
  const q = device.tensor(dtype, [1, tokens, heads, headDim]);
  const out = device.tensor(dtype, q.shape);
  const chunked = chunk === undefined ? undefined : device.tensor(dtype, q.shape);
  const attended = keyValue(dtype, [1, tokens, kvHeads, headDim]);
  const all = keyValue("f32", [tokens + decodeTokens, kvHeads, headDim]);
  const cache = keyValue("f16", [kvHeads, tokens, headDim]);
  const ring = keyValue("f16", [kvHeads, ringSlots, headDim]);
  const roundTrip = kv === undefined ? undefined : makeRoundTrip(device, kv, dtype, inputs);

  const uploaded = [q, attended.k, attended.v, all.k, all.v];
  const uploadStart = performance.now();
  progress.run("q, k, v to the device", () => {
    const promptLength = tokens * kvHeads * headDim;
    q.set(inputs.q);
    attended.k.set(inputs.k.subarray(0, promptLength));
    attended.v.set(inputs.v.subarray(0, promptLength));
    all.k.set(inputs.k);
    all.v.set(inputs.v);
  });
  steps.push({
    name: "q, k, v to the device",
    kernel: "",
    dispatches: 0,
    bytes: bytesOf(uploaded),
    hostTime: (performance.now() - uploadStart) / 1000,
  });

  let built: BuiltMask | undefined;
  const buildMask = (pass: Pass) => {
    built = encodeMask(pass, device, choice, headDim, 0, tokens);
  };
  const attention = { q, ...attended };
  const prompt = { k: all.k.slice(0, tokens), v: all.v.slice(0, tokens) };
  const promptToCache = (pass: Pass) =>
    kvCacheCopySeq(pass, {
      k: { src: prompt.k, cache: cache.k },
      v: { src: prompt.v, cache: cache.v },
      seqPosStart: 0,
    });
  // A ring keeps the end of a longer prompt.
  const ringStart = Math.max(0, tokens - ringSlots);
  const promptToRing = (pass: Pass) =>
    kvCacheCopySeq(pass, {
      k: { src: prompt.k, cache: ring.k },
      v: { src: prompt.v, cache: ring.v },
      seqPosStart: ringStart,
      isSliding: true,
      srcTokOffset: ringStart,
    });
  const decoded = Array.from({ length: decodeTokens }, (_, i) => ({
    position: tokens + i,
    k: token(all.k, tokens + i),
    v: token(all.v, tokens + i),
  }));
  const decode = (pass: Pass) => {
    for (const { position, k, v } of decoded) {
      kvCacheCopyBatch(pass, {
        k: { src: k, cache: ring.k },
        v: { src: v, cache: ring.v },
        seqPos: position,
        isSliding: true,
      });
    }
  };

  const rowBytes = kvHeads * headDim * (4 + 2) * 2;
  const prefillBytes = bytesOf([q, attended.k, attended.v, out]);
  const maskBytes = tokens * tokens * (choice.mask === "bool" ? 1 : 2);
  const work: [name: string, bytes: number, encode: (pass: Pass) => void][] = [
    ["causal prefill", prefillBytes, (pass) => encodeWhole(pass, attention, out, built)],
    ["K and V into the cache", tokens * rowBytes, promptToCache],
    ["the prompt's end into the ring", (tokens - ringStart) * rowBytes, promptToRing],
    [`${decodeTokens} decode tokens into the ring`, decodeTokens * rowBytes, decode],
  ];
  if (choice.mask !== "none") work.unshift(["mask and its tile classes", 2 * maskBytes, buildMask]);
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
  steps.push(
    compile(
      device,
      work.map(([, , encode]) => encode),
      progress,
    ),
  );
  for (const [name, bytes, encode] of work) steps.push(runStep(device, name, bytes, encode, progress));
  return { steps, out, chunked, cache, ring, roundTrip };
}

/** Encodes everything into a pass that never runs, so that the first compile of a kernel has a row of its own. */
function compile(device: Device, work: readonly ((pass: Pass) => void)[], progress: Progress): Step {
  using pass = device.pass();
  const start = performance.now();
  progress.run("compiling the shaders (kept for the next run)", () => {
    for (const encode of work) encode(pass);
  });
  return {
    name: "shaders compiled or loaded",
    kernel: "",
    dispatches: 0,
    bytes: 0,
    hostTime: (performance.now() - start) / 1000,
  };
}

function runStep(device: Device, name: string, bytes: number, encode: (pass: Pass) => void, progress: Progress): Step {
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
