import { FFIType, type Pointer, ptr } from "bun:ffi";
import { flashAttnDecode, flashAttnPrefill, type Tensor } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, type BenchOptions, secondsOf, usualRounds } from "./benchmark.ts";
import { type CacheKind, type DecodeExtents, makeCache } from "./decode-cache.ts";
import { encodeNanoseconds } from "./encode-time.ts";
import { compileC } from "./plain-c.ts";

/** Seconds of a token over K and V of some kinds, submission included. */
export function prepareToken(extents: DecodeExtents, k: CacheKind, v: CacheKind, threads = 1) {
  const { heads, headDim, keys } = extents;
  const device = openWithThreads(threads);
  const caches = [makeCache(device, k, extents), makeCache(device, v, extents)] as const;
  const q = device.tensor("f32", [1, heads, 1, headDim]).set(normalArray(heads * headDim, 1, 3));
  const out = device.tensor("f32", [1, heads, 1, headDim]);
  return {
    device,
    caches,
    seconds: () =>
      secondsOf(() => {
        using pass = device.pass();
        flashAttnDecode(pass, { q, k: caches[0].cache, v: caches[1].cache, out, seqLen: keys });
        pass.commitAndWait();
      }),
    dispose: () => device.dispose(),
  };
}

const plainRead = `
#include <pthread.h>
double read_words(const unsigned long *from, unsigned long count) {
  unsigned long sums[16] = {0};
  for (unsigned long i = 0; i + 16 <= count; i += 16)
    for (int j = 0; j < 16; ++j) sums[j] ^= from[i + j];
  unsigned long all = 0;
  for (int j = 0; j < 16; ++j) all ^= sums[j];
  return (double)all;
}
struct part { const unsigned long *from; unsigned long count; double sum; };
static void *read_part(void *data) {
  struct part *part = data;
  part->sum = read_words(part->from, part->count);
  return 0;
}
// Gives a number made of all words; not a number where no second thread could be made.
double read_by_two(const unsigned long *first, const unsigned long *second, unsigned long count) {
  struct part part = {second, count, 0};
  pthread_t thread;
  if (pthread_create(&thread, 0, read_part, &part)) return __builtin_nan("");
  double sum = read_words(first, count);
  pthread_join(thread, 0);
  return sum + part.sum;
}
`;

interface DenseDecode {
  readonly kind: "f32" | "f16" | "bf16";
  readonly headDim: number;
  readonly heads: number;
  readonly least: number;
}

/** A token over a dense cache, in GB/s of its bytes, beside a plain read of them and prefill with one query. */
function denseDecode({ kind, headDim, heads, least }: DenseDecode): Benchmark {
  const kvHeads = 8;
  const name = `decode-${kind}-d${headDim}${heads === kvHeads ? "-alone" : ""}`;
  return {
    name,
    unit: "GB/s",
    about: `flashAttnDecode over ${kind}, ${heads} / ${kvHeads} heads, D = ${headDim}, 4,096 keys, one thread: bytes of K and V`,
    baselineAbout: "a plain read of the same bytes in C",
    target: { text: `at least ${least} of it`, met: (_, ratio) => ratio >= least },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const extents = { heads, kvHeads, headDim, keys: 4096 };
      const token = prepareToken(extents, kind, kind);
      const library = compileC(plainRead, { read_words: { args: [FFIType.ptr, FFIType.u64], returns: FFIType.f64 } });
      const streams = token.caches.map(({ bytes }) => ({ address: ptr(bytes), words: bytes.length / 8 }));
      const gigabytes = (token.caches[0].bytes.length + token.caches[1].bytes.length) / 1e9;
      return {
        measure: () => gigabytes / token.seconds(),
        baseline: () =>
          gigabytes /
          secondsOf(() => {
            for (const { address, words } of streams) library.symbols.read_words(address, words);
          }),
        ...(kind === "f32"
          ? {}
          : { others: { "prefill with one query": preparePrefillOfOne(token, kind, extents, gigabytes) } }),
        dispose() {
          token.dispose();
          library.close();
        },
      };
    },
  };
}

/** What a user had before: prefill with one query over the same cache. */
function preparePrefillOfOne(
  { device, caches }: ReturnType<typeof prepareToken>,
  kind: "f16" | "bf16",
  { heads, headDim, keys }: DecodeExtents,
  gigabytes: number,
): () => number {
  const shape = [1, heads, 1, headDim];
  const q = device.tensor(kind, shape).set(normalArray(heads * headDim, 1, 3));
  const out = device.tensor(kind, shape);
  const [k, v] = caches.map(({ cache }) => cache as Tensor<"f16" | "bf16">) as [Tensor<"f16">, Tensor<"f16">];
  return () =>
    gigabytes /
    secondsOf(() => {
      using pass = device.pass();
      flashAttnPrefill(pass, { q, k, v, out, seqLenK: keys });
      pass.commitAndWait();
    });
}

/** Extents of the benchmarks over codes. */
const extents = ({ quick }: BenchOptions) => ({ heads: 32, kvHeads: 8, headDim: 128, keys: quick ? 4096 : 32768 });

/** Tokens a second over codes, beside f16 of the same length. */
function codedDecode(k: 3 | 4 | 8, v: 3 | 4): Benchmark {
  return {
    name: `decode-k${k}v${v}`,
    unit: "tokens/s",
    about: `flashAttnDecode, K of ${k} bits and V of ${v}, 32 / 8 heads, D = 128, 32,768 keys (4,096 in a quick run), one thread`,
    baselineAbout: "the same over f16",
    target: { text: "at least 1.0 of it", met: (_, ratio) => ratio >= 1 },
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: true,
    prepare(options) {
      const token = prepareToken(extents(options), k, v);
      const dense = prepareToken(extents(options), "f16", "f16");
      return {
        measure: () => 1 / token.seconds(),
        baseline: () => 1 / dense.seconds(),
        dispose() {
          for (const each of [token, dense]) each.dispose();
        },
      };
    },
  };
}

/** A token on two threads, beside one; f16 beside plain reads of the same bytes too, which memory may bound. */
function decodeTwoThreads(k: CacheKind, v: CacheKind): Benchmark {
  const isDense = k === "f16";
  return {
    name: `decode-${isDense ? k : `k${k}v${v}`}-2t`,
    unit: "tokens/s",
    about: `flashAttnDecode, ${isDense ? "K and V in f16" : `K of ${k} bits and V of ${v}`}, 32 / 8 heads, D = 128, 32,768 keys (4,096 in a quick run), two threads`,
    baselineAbout: "the same on one thread",
    target: { text: "at least 1.9 times it", met: (_, ratio) => ratio >= 1.9 },
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: true,
    prepare(options) {
      const one = prepareToken(extents(options), k, v);
      const two = prepareToken(extents(options), k, v, 2);
      const library = compileC(plainRead, {
        read_words: { args: [FFIType.ptr, FFIType.u64], returns: FFIType.f64 },
        read_by_two: { args: [FFIType.ptr, FFIType.ptr, FFIType.u64], returns: FFIType.f64 },
      });
      const [first, second] = one.caches.map(({ bytes }) => ptr(bytes)) as [Pointer, Pointer];
      const words = one.caches[0].bytes.length / 8;
      const reads = {
        "plain reads a second on one thread": () =>
          1 /
          secondsOf(() => {
            library.symbols.read_words(first, words);
            library.symbols.read_words(second, words);
          }),
        "on two": () => 1 / secondsOf(() => library.symbols.read_by_two(first, second, words)),
      };
      return {
        measure: () => 1 / two.seconds(),
        baseline: () => 1 / one.seconds(),
        ...(isDense ? { others: reads } : {}),
        dispose() {
          one.dispose();
          two.dispose();
          library.close();
        },
      };
    },
  };
}

/** 16 ragged sequences in one call, beside a call for each. */
const decodeBatch: Benchmark = {
  name: "decode-batch",
  unit: "ms",
  about: "flashAttnDecode, 16 sequences of 8 to 128 keys in one call, f16, 8 / 2 heads, D = 64, two threads",
  baselineAbout: "a pass with a call for each",
  target: { text: "at most half of it", met: (_, ratio) => ratio <= 0.5 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(2);
    const [batch, heads, kvHeads, headDim, capacity] = [16, 8, 2, 64, 128];
    const lengths = Array.from({ length: batch }, (_, i) => 8 * (i + 1));
    const q = device.tensor("f32", [batch, heads, 1, headDim]).set(normalArray(batch * heads * headDim, 1, 3));
    const out = device.tensor("f32", [batch, heads, 1, headDim]);
    const cache = (seed: number) =>
      device
        .tensor("f16", [batch, kvHeads, capacity, headDim])
        .set(normalArray(batch * kvHeads * capacity * headDim, 1, seed));
    const [k, v] = [cache(1), cache(2)];
    const seqLens = device.tensor("i32", [batch]).set(lengths);
    const parts = lengths.map((seqLen, i) => {
      const part = <T extends Tensor>(tensor: T) => tensor.slice(i, i + 1) as T;
      return { q: part(q), k: part(k), v: part(v), out: part(out), seqLen };
    });
    return {
      measure: () =>
        1000 *
        secondsOf(() => {
          using pass = device.pass();
          flashAttnDecode(pass, { q, k, v, out, seqLens });
          pass.commitAndWait();
        }),
      baseline: () =>
        1000 *
        secondsOf(() => {
          for (const args of parts) {
            using pass = device.pass();
            flashAttnDecode(pass, args);
            pass.commitAndWait();
          }
        }),
      dispose: () => device.dispose(),
    };
  },
};

/** What a call costs the host; the compiled code of a process that decodes, not its first calls. */
function decodeHostCost(k: CacheKind, v: CacheKind, keys: number): Benchmark {
  const isDense = k === "f16" && v === "f16";
  const [calls, dispatches] = [1024, keys > 256 ? 2 : 1];
  const codes = isDense ? "" : `-k${k}v${v}`;
  const format = isDense ? "f16" : `K of ${k} bits and V of ${v}`;
  return {
    name: `decode-host-cost${codes}${dispatches === 1 ? "" : "-2"}`,
    unit: "ns",
    about: `flashAttnDecode over ${format} of ${keys.toLocaleString("en")} keys, in ${dispatches === 1 ? "one dispatch" : "two dispatches"}, ${calls.toLocaleString("en")} calls to a pass, encoded only, processor time`,
    baselineAbout: "flashAttnPrefill over f16 with one query",
    ...(dispatches === 1 ? { target: { text: "at most 700 ns", met: (value: number) => value <= 700 } } : {}),
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const device = openWithThreads(1);
      const extents = { heads: 8, kvHeads: 2, headDim: 64, keys: Math.ceil(keys / 256) * 256 };
      const dense = () => makeCache(device, "f16", extents).cache as Tensor<"f16">;
      const row = () => device.tensor("f16", [1, extents.heads, 1, extents.headDim]);
      const prompt = { q: row(), k: dense(), v: dense(), out: row() };
      const token = isDense
        ? prompt
        : { ...prompt, k: makeCache(device, k, extents).cache, v: makeCache(device, v, extents).cache };
      return {
        measure: () => encodeNanoseconds(device, calls, (pass) => flashAttnDecode(pass, { ...token, seqLen: keys })),
        baseline: () =>
          encodeNanoseconds(device, calls, (pass) => flashAttnPrefill(pass, { ...prompt, seqLenK: keys })),
        dispose: () => device.dispose(),
      };
    },
  };
}

/** Decode attention. */
export const decodeBenchmarks: readonly Benchmark[] = [
  denseDecode({ kind: "f16", headDim: 128, heads: 32, least: 0.3 }),
  denseDecode({ kind: "f16", headDim: 128, heads: 8, least: 0.5 }),
  denseDecode({ kind: "f16", headDim: 64, heads: 32, least: 0.3 }),
  denseDecode({ kind: "f16", headDim: 256, heads: 32, least: 0.3 }),
  denseDecode({ kind: "bf16", headDim: 128, heads: 32, least: 0.3 }),
  denseDecode({ kind: "f32", headDim: 128, heads: 32, least: 0.3 }),
  codedDecode(8, 4),
  codedDecode(4, 4),
  codedDecode(3, 3),
  decodeTwoThreads("f16", "f16"),
  decodeTwoThreads(8, 4),
  decodeTwoThreads(4, 4),
  decodeTwoThreads(3, 3),
  decodeBatch,
  decodeHostCost("f16", "f16", 200),
  decodeHostCost(8, 4, 200),
  decodeHostCost("f16", "f16", 4000),
];
