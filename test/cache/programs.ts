import { expect } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import {
  type Device,
  KvCache,
  type KvCacheOptions,
  type KvFormat,
  type KvRope,
  type KvSequence,
  MetalAttentionError,
  type Pass,
  type RecordedPass,
  type Tensor,
} from "../../src/index.ts";
import { attention, type Scores } from "./attention.ts";
import { Model, type ModelSequence } from "./model.ts";
import { vocabularySize, type Words, wordsAt, wordsOf, wordsThrough } from "./vocabulary.ts";

/** One line of a program; the numbers choose among what there is at that point. */
export interface Line {
  readonly call: "step" | "abandon" | "fork" | "trim" | "crop" | "drop" | "open" | "match" | "load";
  readonly a: number;
  readonly b: number;
}

/** A program for one kind of cache. */
export const programOf = (most: number): fc.Arbitrary<Line[]> => {
  const call = fc.constantFrom<Line["call"][]>(
    ...([
      "step",
      "step",
      "step",
      "step",
      "abandon",
      "fork",
      "fork",
      "trim",
      "crop",
      "drop",
      "open",
      "match",
      "load",
    ] as const),
  );
  return fc.array(fc.record({ call, a: fc.nat(0xffff), b: fc.nat(0xffff) }), {
    minLength: 1,
    maxLength: most,
    size: "max",
  });
};

/** Kinds of caches, of few kernels. */
const sharedKinds: Readonly<Record<string, KvCacheOptions>> = {
  "a line": { ...shape(), capacity: 40, k: "f16", v: "f16", sequences: 2 },
  "a quantized line": { ...shape(), capacity: 40, sequences: 3 },
  "a ring": { ...shape(), capacity: 16, window: 9, k: "f16", v: "f16", sequences: 2, rollback: 2 },
  "a ring that keeps": { ...shape(), capacity: 18, k: "f16", v: "bf16", window: 7, keep: 3, sequences: 2 },
  "a quantized ring that keeps": { ...shape(), capacity: 18, window: 7, keep: 3, sequences: 2 },
  "a quantized ring with a tail": {
    ...shape(),
    capacity: 20,
    window: 9,
    keep: 3,
    tail: 4,
    maxAppend: 6,
    sequences: 2,
    rollback: 3,
  },
  "a ring that keeps more than its window": {
    ...shape(),
    ...{ capacity: 20, window: 4, keep: 9, tail: 6, maxAppend: 5, rollback: 2 },
  },
  "a quantized line with a tail": { ...shape(), capacity: 60, tail: 5, maxAppend: 12, sequences: 2, tailDtype: "bf16" },
  "a quantized line with a tail of one": { ...shape(), capacity: 40, tail: 1, maxAppend: 4, sequences: 2 },
  pages: { ...shape(), capacity: 40, k: "f16", v: "f16", sequences: 4, pages: { tokens: 4, count: 14 } },
  "quantized pages": { ...shape(), capacity: 40, sequences: 4, pages: { tokens: 8, count: 9 } },
  "quantized pages of two heads": {
    ...shape(),
    nKvHeads: 2,
    capacity: 40,
    sequences: 4,
    pages: { tokens: 8, count: 9 },
  },
  "pages with a window": {
    ...shape(),
    ...{ capacity: 60, k: "f16", v: "f16", sequences: 3, window: 9, rollback: 2, pages: { tokens: 4, count: 14 } },
  },
  "quantized pages with a window and a tail": {
    ...shape(),
    ...{ capacity: 60, sequences: 2, window: 6, tail: 11, maxAppend: 9, pages: { tokens: 4, count: 20 } },
  },
  "quantized pages with a tail": {
    ...shape(),
    capacity: 60,
    tail: 3,
    maxAppend: 8,
    sequences: 3,
    pages: { tokens: 4, count: 24 },
  },
};

/** Some again in the device's own memory, which the CPU does not see: what moves there is a pass of copies. */
const privateKinds = [
  "a line",
  "a quantized ring that keeps",
  "a quantized ring with a tail",
  "quantized pages with a tail",
];

export const kinds: Readonly<Record<string, KvCacheOptions>> = {
  ...sharedKinds,
  ...Object.fromEntries(
    privateKinds.map((name) => [`${name}, private`, { ...(sharedKinds[name] as KvCacheOptions), storage: "private" }]),
  ),
};

function shape() {
  return { layers: 2, nKvHeads: 1, headDim: 64 };
}

const heads = 2;

// What steps at random have.
/** Of ALiBi, by head. The second prefers what is far away. */
const slopes = Float32Array.of(0.2, -0.03);
/** Logits, by head. */
const sinks = Float32Array.of(0.4, -1);
const softcap = 1.5;

/** How the keys of every second program turn. */
const rope: KvRope = { theta: 100, pairing: "half" };

/** What a step says about its scores. */
interface Asked extends Scores {
  /** Smaller than the cache's. */
  readonly window: number | undefined;
}

/** What a layer's attend was asked, and gave. */
interface Result {
  readonly q: Float32Array;
  readonly out: Tensor<"f16" | "f32">;
}

/** The tensors of a step, of one layer. */
interface LayerTensors {
  readonly k: Tensor<"f32">;
  readonly v: Tensor<"f32">;
  readonly q: Tensor<"f16" | "f32">;
  readonly out: Tensor<"f16" | "f32">;
}

/** A step that was recorded, to be run again where the same is meant. */
interface Recording {
  readonly of: readonly KvSequence[];
  readonly counts: string;
  readonly step: RecordedPass;
  readonly asked: Asked;
  readonly tensors: readonly LayerTensors[];
}

interface LayerWords {
  readonly k: Words;
  readonly v: Words;
}

/** Runs programs on one kind of cache beside its model. */
export class Runner {
  readonly #device: Device;
  readonly #options: KvCacheOptions;
  readonly #words: readonly LayerWords[];

  /** Sequences whose bits were compared with those of one appended at once. */
  bitsCompared = 0;
  /** The step of a cache that was recorded last. */
  #recording: Recording | undefined;
  readonly #through = new Map<string, Float32Array>();

  readonly #folder: string;
  readonly #slopes: Tensor<"f32">;
  readonly #sinks: Tensor<"f32">;
  /** Whether the keys of the program turn. */
  #isTurned = false;
  readonly #turned = new Map<string, Words>();

  /** @param folder For files. */
  constructor(device: Device, options: KvCacheOptions, folder: string) {
    this.#folder = folder;
    this.#device = device;
    this.#options = options;
    this.#slopes = device.tensor("f32", [heads]).set(slopes);
    this.#sinks = device.tensor("f32", [heads]).set(sinks);
    const { layers, nKvHeads, headDim } = options;
    this.#words = Array.from({ length: layers }, (_, layer) => ({
      k: wordsOf(device, 2 * layer + 1, nKvHeads, headDim),
      v: wordsOf(device, 2 * layer + 2, nKvHeads, headDim),
    }));
  }

  async run(program: readonly Line[]): Promise<void> {
    let cache = new KvCache(this.#device, this.#options);
    this.#recording = undefined;
    this.#isTurned = (program[0]?.a ?? 0) % 2 === 1;
    try {
      const model = new Model(this.#options);
      const handles = new Map<ModelSequence, KvSequence>();
      for (const line of program) {
        if (line.call === "load") cache = await this.#reload(cache, handles);
        else this.#do(line, cache, model, handles);
        const lengths = model.live.map((sequence) => handles.get(sequence)?.length);
        expect(lengths).toEqual(model.live.map(({ ids }) => ids.length));
        const { pages } = this.#options;
        if (pages !== undefined) expect(cache.freePages).toBe(pages.count - model.usedPages);
      }
      this.#compareBits(cache, model, handles);
    } finally {
      cache.dispose();
    }
  }

  /** Each sequence gives a next token the bits that one gives it that was appended at once, whatever the program did. */
  #compareBits(cache: KvCache, model: Model, handles: Map<ModelSequence, KvSequence>): void {
    for (const sequence of model.live) {
      const { ids } = sequence;
      const isFresh = model.quantizedFor({ ...sequence, quantized: 0 }, ids.length - 1) === sequence.quantized;
      // What a trim left in codes is in the tail of one that was never longer.
      if (ids.length === 0 || (model.tailLength > 0 && !isFresh)) continue;
      if (model.refuses([[sequence, 1]]) !== undefined) continue;
      using fresh = new KvCache(this.#device, { ...this.#options, sequences: 1 });
      const other = fresh.sequence();
      this.#probe(fresh, other, ids);
      fresh.advance();
      const found = this.#probe(cache, handles.get(sequence) as KvSequence, [3]);
      cache.abandon();
      expect(found).toEqual(this.#probe(fresh, other, [3]));
      this.bitsCompared += 1;
    }
  }

  /** Appends tokens to a sequence; gives what attention makes of them. */
  #probe(cache: KvCache, sequence: KvSequence, ids: readonly number[]): Float32Array[] {
    const tensors = this.#tensors(ids.length, "f32");
    this.#fill(tensors, ids, 1);
    using pass = this.#device.pass();
    for (const [layer, { k, v, q, out }] of tensors.entries()) {
      cache.append(pass, layer, { k, v, sequences: [sequence], ...(this.#isTurned && { rope }) });
      cache.attend(pass, layer, { q, out, sinks: this.#sinks });
    }
    pass.commitAndWait();
    const results = tensors.map(({ out }) => out.toFloat32Array());
    for (const each of tensors) for (const tensor of Object.values(each)) tensor.dispose();
    return results;
  }

  /** The same cache out of a file. */
  async #reload(cache: KvCache, handles: Map<ModelSequence, KvSequence>): Promise<KvCache> {
    const path = join(this.#folder, "cache.safetensors");
    await cache.save(path);
    const loaded = await KvCache.load(this.#device, path, this.#options);
    for (const [sequence, handle] of handles) {
      const place = cache.sequences.indexOf(handle);
      if (place >= 0) handles.set(sequence, loaded.sequences[place] as KvSequence);
    }
    // What is saved of it again has the same bytes.
    const copy = join(this.#folder, "copy.safetensors");
    await loaded.save(copy);
    expect(Bun.hash(await Bun.file(copy).bytes())).toBe(Bun.hash(await Bun.file(path).bytes()));
    cache.dispose();
    this.#recording = undefined;
    return loaded;
  }

  #do({ call, a, b }: Line, cache: KvCache, model: Model, handles: Map<ModelSequence, KvSequence>): void {
    const sequence = model.live[a % Math.max(1, model.live.length)];
    if (call === "open" || sequence === undefined) {
      const next = model.open();
      if (typeof next === "string") expect(codeOf(() => cache.sequence())).toBe(next);
      else handles.set(next, cache.sequence());
      return;
    }
    const handle = handles.get(sequence) as KvSequence;
    const { length } = sequence.ids;
    if (call === "step" || call === "abandon") this.#step(call, a, b, cache, model, handles);
    else if (call === "drop") {
      model.drop(sequence);
      handle.drop();
      expect(codeOf(() => handle.length)).toBe("disposed");
    } else if (call === "fork") {
      const at = b % 3 === 0 ? length : b % (length + 2);
      const next = model.fork(sequence, at);
      if (typeof next === "string") expect(codeOf(() => handle.fork(at))).toBe(next);
      else handles.set(next, handle.fork(at));
    } else if (call === "match") this.#match(b, cache, model, handles);
    else {
      const to = call === "trim" ? length - Math.min(length, b % 5) : b % (length + 2);
      const refusal = to === length ? undefined : model.refusesCut(sequence, to);
      const cut = () => (call === "trim" ? handle.trim(b % 5) : handle.crop(to));
      expect(codeOf(cut)).toBe(refusal);
      if (refusal === undefined) model.cut(sequence, to);
    }
  }

  #match(b: number, cache: KvCache, model: Model, handles: Map<ModelSequence, KvSequence>): void {
    const of = model.live[b % model.live.length] as ModelSequence;
    const asked = [...of.ids.slice(0, b % (of.ids.length + 1)), (b * 7) % vocabularySize];
    const shared = (ids: readonly number[]) => {
      let count = 0;
      while (count < ids.length && ids[count] === asked[count]) count++;
      return count;
    };
    const best = Math.max(
      ...model.live.map((sequence) => (model.refusesCut(sequence, shared(sequence.ids)) ? 0 : shared(sequence.ids))),
    );
    const found = cache.match(asked);
    expect(found?.length ?? 0).toBe(best);
    if (found === undefined) return;
    const owner = model.live.find((sequence) => handles.get(sequence) === found.sequence) as ModelSequence;
    expect(shared(owner.ids)).toBe(best);
  }

  /** Appends to some of the sequences, attends, and advances, or not. */
  #step(
    call: "step" | "abandon",
    a: number,
    b: number,
    cache: KvCache,
    model: Model,
    handles: Map<ModelSequence, KvSequence>,
  ): void {
    const first = a % model.live.length;
    const several = 1 + ((a >> 4) % model.live.length);
    const chosen = Array.from(
      { length: several },
      (_, i) => model.live[(first + i) % model.live.length] as ModelSequence,
    );
    // Mostly one token each, as decode does; at times a prompt.
    const counts = chosen.map((_, i) => (b % 3 === 0 ? 1 : 1 + ((b >> (2 + i)) % (b % 5 === 1 ? 20 : 5))));
    const ids = counts.map((count, i) =>
      Array.from({ length: count }, (_, j) => (a + 5 * i + b * 3 + j * j) % vocabularySize),
    );
    const refusal = model.refuses(chosen.map((sequence, i) => [sequence, counts[i] as number]));
    const sequences = chosen.map((of) => handles.get(of) as KvSequence);
    const rows = ids.flat().length;
    // Of 16 bits, so that prompts go to prefill; else by decode attention.
    const dtype = (a >> 2) % 2 === 0 ? "f16" : "f32";
    const isRecorded = (b >> 6) % 3 === 0 && Math.max(...counts) <= 16 && !model.isLong(counts);
    const known = isRecorded ? this.#known(sequences, counts) : undefined;
    const tensors = known?.tensors ?? this.#tensors(rows, dtype);
    const asked = known?.asked ?? this.#asked(a, b);
    const results = this.#fill(tensors, ids.flat(), a);
    const append = (pass: Pass, layer: number) => {
      const { k, v } = tensors[layer] as LayerTensors;
      return cache.append(pass, layer, { k, v, sequences, counts, ...(this.#isTurned && { rope }) });
    };
    using pass = this.#device.pass();
    if (refusal !== undefined) {
      expect(codeOf(known === undefined ? () => append(pass, 0) : () => cache.prepare(rows))).toBe(refusal);
      return;
    }
    const encode = (into: Pass) => {
      for (const [layer, { q, out }] of tensors.entries()) {
        expect(append(into, layer)).toBe(chosen[0]?.ids.length as number);
        cache.attend(into, layer, {
          ...{ q, out },
          ...(asked.slopes && { alibiSlopes: this.#slopes }),
          ...(asked.sinks && { sinks: this.#sinks }),
          ...(asked.softcap !== undefined && { softcap: asked.softcap }),
          ...(asked.window !== undefined && { window: asked.window }),
        });
      }
    };
    const isDone = call === "step" || b % 2 !== 0;
    if (isRecorded) {
      const step = known?.step ?? this.#device.record(encode);
      this.#recording = known ?? { of: sequences, counts: `${counts}`, step, asked, tensors };
      const values = cache.prepare(rows);
      if (isDone) step.commitAndWait(values);
    } else {
      encode(pass);
      if (isDone) pass.commitAndWait();
      else pass.dispose();
    }
    if (call === "abandon") {
      cache.abandon();
      for (const [i, sequence] of chosen.entries()) {
        model.reserve(sequence);
        if (isDone && !model.isLong(counts)) model.write(sequence, counts[i] as number);
      }
    } else {
      cache.advance(rows, ids.flat());
      this.#check(chosen, counts, ids, model, results, asked);
      for (const [i, sequence] of chosen.entries()) model.advance(sequence, ids[i] as number[]);
    }
    if (!isRecorded) for (const each of tensors) for (const tensor of Object.values(each)) tensor.dispose();
  }

  #asked(a: number, b: number): Asked {
    const { window = 12 } = this.#options;
    return {
      slopes: (a >> 8) % 3 === 0 ? slopes : undefined,
      sinks: (a >> 10) % 3 === 0 ? sinks : undefined,
      softcap: (a >> 12) % 3 === 0 ? softcap : undefined,
      window: (b >> 8) % 3 === 0 ? 1 + ((b >> 10) % window) : undefined,
    };
  }

  /** The step that was recorded last, where that is of these sequences and numbers of tokens. */
  #known(sequences: readonly KvSequence[], counts: readonly number[]): Recording | undefined {
    const recording = this.#recording;
    const isSame = recording?.counts === `${counts}` && sequences.every((each, i) => each === recording.of[i]);
    return isSame && sequences.length === recording?.of.length ? recording : undefined;
  }

  #tensors(rows: number, dtype: "f16" | "f32"): LayerTensors[] {
    const { layers, nKvHeads, headDim } = this.#options;
    return Array.from({ length: layers }, () => ({
      k: this.#device.tensor("f32", [rows, nKvHeads, headDim]),
      v: this.#device.tensor("f32", [rows, nKvHeads, headDim]),
      q: this.#device.tensor(dtype, [rows, heads, headDim]),
      out: this.#device.tensor(dtype, [rows, heads, headDim]),
    }));
  }

  /** Writes what a step appends and asks for. */
  #fill(tensors: readonly LayerTensors[], ids: readonly number[], seed: number): Result[] {
    const { nKvHeads, headDim } = this.#options;
    return tensors.map(({ k, v, q, out }, layer) => {
      const words = this.#words[layer] as LayerWords;
      for (const [tensor, { source }] of [
        [k, words.k],
        [v, words.v],
      ] as const) {
        tensor.set(Float32Array.from(ids.flatMap((id) => [...wordOf(source, id, nKvHeads * headDim)])));
      }
      q.set(Float32Array.from({ length: q.length }, (_, i) => Math.sin(i * 0.7 + seed + layer) * 2));
      return { q: q.toFloat32Array(), out };
    });
  }

  /** Holds results against attention in float64 over what the model says that each row sees. */
  #check(
    chosen: readonly ModelSequence[],
    counts: readonly number[],
    ids: readonly (readonly number[])[],
    model: Model,
    results: readonly Result[],
    asked: Asked,
  ): void {
    const { nKvHeads, headDim } = this.#options;
    for (const [layer, { q, out }] of results.entries()) {
      const got = out.toFloat32Array();
      let row = 0;
      for (const [i, sequence] of chosen.entries()) {
        const all = [...sequence.ids, ...(ids[i] as number[])];
        for (let j = 0; j < (counts[i] as number); j++, row++) {
          const position = sequence.ids.length + j;
          const quantized = model.quantizedFor(sequence, position);
          const seen = model.seenFrom(position, asked.window);
          const stream = (name: "k" | "v") =>
            seen.map((at) =>
              wordOf(this.#kept(layer, name, at < quantized, at), all[at] as number, nKvHeads * headDim),
            );
          const length = heads * headDim;
          const expected = attention(
            q.subarray(row * length, (row + 1) * length),
            stream("k"),
            stream("v"),
            heads,
            nKvHeads,
            asked,
            seen.map((at) => position - at),
          );
          let worst = 0;
          for (const [d, value] of expected.entries())
            worst = Math.max(worst, Math.abs(value - (got[row * length + d] as number)));
          // Values reach about 4; the contract of decode attention is 1e-5 of the largest, and parts are merged. Of 16
          // bits the result, and in prefill the weights, are rounded to 11 bits.
          if (!(worst < (out.dtype === "f16" ? 4e-3 : 8e-5)))
            throw new Error(`layer ${layer}, row ${row} at position ${position}: off by ${worst}`);
        }
      }
    }
  }

  /** The vocabulary as the cache keeps it at a position: quantized by now, or still in the tail. */
  #kept(layer: number, name: "k" | "v", isOld: boolean, position: number): Float32Array {
    const { tail = 0, tailDtype = "f16", nKvHeads, headDim } = this.#options;
    const isTurned = this.#isTurned && name === "k";
    const words = isTurned ? this.#wordsAt(layer, position) : (this.#words[layer]?.[name] as Words);
    const format: KvFormat = this.#options[name] ?? { bits: name === "k" ? 8 : 4 };
    if (tail === 0) return words.as(format);
    if (!isOld) return words.as(tailDtype);
    const key = `${layer} ${name} ${isTurned ? position : "anywhere"}`;
    const through = this.#through.get(key) ?? wordsThrough(words, this.#device, tailDtype, format, [nKvHeads, headDim]);
    this.#through.set(key, through);
    return through;
  }

  /** The keys of a layer, turned by a position. */
  #wordsAt(layer: number, position: number): Words {
    const { nKvHeads, headDim } = this.#options;
    const key = `${layer} ${position}`;
    const words =
      this.#turned.get(key) ??
      wordsAt((this.#words[layer] as LayerWords).k, this.#device, rope, position, [nKvHeads, headDim]);
    this.#turned.set(key, words);
    return words;
  }
}

/** The code of what `action` is refused with; undefined where it is not. */
function codeOf(action: () => unknown): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof MetalAttentionError) return error.code;
    throw error;
  }
}

function wordOf(words: Float32Array, id: number, length: number): Float32Array {
  return words.subarray(id * length, (id + 1) * length);
}
