import { afterAll, expect } from "bun:test";
import { Pass } from "../../src/device/pass.ts";
import { type AppendRope, Device, hadamardQuantizeKvSeq, kvCacheBytes, type Tensor } from "../../src/index.ts";
import type { CodeFormat } from "../../src/reference/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { normalDraws } from "../helpers/random.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted where the dtype of a source, or the formats of K and V, are told apart: the bytes that each stream
// has alone, from f32 of the same values, must show them.

const device = Device.open();
afterAll(() => device.dispose());

const [heads, tokens, capacity, start] = [5, 3, 8, 4];

interface Scene {
  readonly headDim: number;
  readonly dtype: "f32" | "f16" | "bf16";
  readonly formats: readonly [k: CodeFormat, v: CodeFormat];
  readonly rope?: AppendRope;
  /** Elements that sources lie off from a whole word. */
  readonly shift?: number;
}

const nibbles: CodeFormat = { bits: 4, packing: "nibble" };
const bytes = (bits: 5 | 6 | 8): CodeFormat => ({ bits, packing: "byte" });
const dense = (bits: 2 | 3 | 5 | 6): CodeFormat => ({ bits, packing: "dense" });

const rope: AppendRope = { theta: 10_000, pairing: "half" };
const scenes = {
  mixed: { headDim: 64, dtype: "f32", formats: [bytes(5), nibbles] },
  mixedBytes: { headDim: 64, dtype: "f16", formats: [dense(6), bytes(6)] },
  widths: { headDim: 64, dtype: "f16", formats: [bytes(8), bytes(5)], shift: 1 },
  dense: { headDim: 64, dtype: "bf16", formats: [dense(2), dense(5)] },
  turned: { headDim: 96, dtype: "f16", formats: [bytes(8), nibbles], rope },
  turnedAlike: { headDim: 96, dtype: "bf16", formats: [nibbles, nibbles], rope },
  // Sizes without kernels of their own, in threadgroup memory.
  any: { headDim: 32, dtype: "f16", formats: [bytes(5), nibbles] },
  anyAlike: { headDim: 32, dtype: "bf16", formats: [dense(3), dense(2)] },
} satisfies Readonly<Record<string, Scene>>;
type SceneName = keyof typeof scenes;

/** K and V with caches that have room behind them, so that a mistake writes inside. */
function streamsOf({ headDim, dtype, formats, shift = 0 }: Scene) {
  const draw = normalDraws(headDim);
  return formats.map((format) => {
    const { bytesPerRow } = kvCacheBytes({ headDim, nKvHeads: heads, capacity, ...format });
    const length = tokens * heads * headDim;
    const whole: Tensor<Scene["dtype"]> = device.tensor(dtype, [4 * length]);
    whole.set(Float32Array.from({ length: whole.length }, draw));
    const src = whole.slice(shift, shift + length).reshape([tokens, heads, headDim]);
    const packed = device.tensor("u8", [4 * heads, capacity, bytesPerRow]);
    const norms = device.tensor("f32", [4 * heads, capacity, 1]);
    return {
      args: { src, packed: packed.slice(0, heads), norms: norms.slice(0, heads), ...format },
      whole: { src: whole.slice(shift, 4 * length), packed, norms },
      bytes: () => [...packed.view(), ...norms.bytes],
    };
  });
}

/** What each stream has alone, of f32. */
function alone(scene: Scene): number[] {
  const streams = streamsOf(scene);
  using pass = device.pass();
  for (const [i, { args }] of streams.entries()) {
    const src = device.tensor("f32", args.src.shape).set(args.src.toFloat32Array());
    const rope = i === 0 && scene.rope ? { rope: scene.rope } : {};
    hadamardQuantizeKvSeq(pass, { ...args, src, writePosStart: start, ...rope });
  }
  pass.commitAndWait();
  return streams.flatMap((stream) => stream.bytes());
}

/** Both in the kernel of the call, changed by the patches of a mistake. */
function together(scene: Scene, patches: readonly ShaderPatch[]): number[] {
  const { headDim, formats, dtype, shift } = scene;
  const turned = scene.rope;
  const streams = streamsOf(scene);
  const [k, v] = streams as [(typeof streams)[0], (typeof streams)[0]];
  // The grid, the parameters and the frequencies are those of the call.
  using described = device.pass();
  hadamardQuantizeKvSeq(described, { k: k.args, v: v.args, writePosStart: start, ...(turned && { rope: turned }) });
  const [dispatch] = described.describe();
  if (dispatch === undefined) throw new Error("nothing was encoded");
  const { native, handle } = Pass.use(described);
  const isAny = headDim === 32;
  const file = isAny ? "hadamard_quantize_kv_any.metal" : "hadamard_quantize_kv_seq.metal";
  const kernel = plant(device, file, dispatch.kernel, patches);
  const flags = [shift === undefined, turned !== undefined, false, turned !== undefined];
  const packing = { nibble: 1, byte: 2, dense: 3 };
  const numbers = [{ f32: 1, f16: 2, bf16: 3 }[dtype], packing[formats[0].packing], packing[formats[1].packing]];
  const pipeline = device.pipeline(kernel, {
    constants: [
      ...flags.map((value, i) => ({ index: 2 + i, dtype: "bool", value }) as const),
      ...numbers.map((value, i) => ({ index: 6 + i, dtype: "u32", value }) as const),
    ],
  });
  const read = (tensor: Tensor) => ({ tensor, access: "read" }) as const;
  using pass = device.pass();
  pass.dispatch(pipeline, {
    buffers: {
      ...{ 0: read(k.whole.src), 1: k.whole.packed, 2: k.whole.norms },
      ...{ 4: read(v.whole.src), 5: v.whole.packed, 6: v.whole.norms },
      // Neither positions nor a block table are read.
      ...{ 7: read(k.whole.norms.slice(1)), 8: read(k.whole.norms.slice(1)) },
    },
    bytes: {
      3: argumentBytes(native, handle, 0, 3),
      ...(turned && { 9: argumentBytes(native, handle, 0, 9) }),
    },
    ...(isAny && { threadgroupMemory: { 0: 8 * headDim } }),
    form: isAny ? "threadgroups" : "threads",
    grid: dispatch.grid,
    threads: dispatch.threadsPerThreadgroup,
  });
  pass.commitAndWait();
  return streams.flatMap((stream) => stream.bytes());
}

const isRight = (name: SceneName, patches: readonly ShaderPatch[] = []) =>
  Bun.deepEquals(together(scenes[name], patches), alone(scenes[name]));

testTable(
  "without a mistake",
  (Object.keys(scenes) as SceneName[]).map((name) => ({ name })),
  ({ name }) => expect(isRight(name)).toBe(true),
);

/** A mistake, and scenes each of which shows it. */
function mistake(name: string, names: readonly SceneName[], find: RegExp, replace: string) {
  return { name, names, patch: { find, replace } };
}

const packing = /stream\.is_v \? packing_v : packing_k/;
const elementSize = /source_dtype == 1 \? 4 : 2/;
const stream = /EncodedStream stream = \w+\.y != 0 \? v : k/;
const mistakes = [
  mistake("V in K's packing", ["mixed", "any"], packing, "packing_k"),
  mistake("K in V's packing", ["mixed", "any"], packing, "packing_v"),
  mistake("bytes as wide as their codes", ["any"], /packing_of\(stream\) == 2 \?/, "packing_of(stream) == 3 ?"),
  mistake("V of K's width", ["widths", "any"], /(\w+)\.codebook_bits_v, true/, "$1.codebook_bits, true"),
  mistake("bytes without gaps", ["mixedBytes"], /else if \(packing == 2\)/, "else if (packing == 4)"),
  mistake("K where V is", ["mixed", "any"], stream, "EncodedStream stream = k"),
  mistake("rows of 4 bytes an element", ["widths", "anyAlike"], elementSize, "4"),
  mistake("rows of 2 bytes an element", ["mixed"], elementSize, "2"),
  mistake("f16 read as bf16", ["mixedBytes"], /load_quads<D, Float16>/, "load_quads<D, Bfloat16>"),
  mistake("bf16 read as f16", ["dense"], /load_quads<D, Bfloat16>/, "load_quads<D, Float16>"),
  mistake("bf16 as the lower halves", ["dense"], /\(uint4\(bits\) << 16\)/, "(uint4(bits))"),
  mistake("the third element twice", ["widths"], /Quad::Packed \*>\(from\)\)\);/, "Quad::Packed *>(from))).xyzz;"),
  mistake(
    "the others of pairs as f32",
    ["turned"],
    /source_dtype == 1\) \{\s+quad\[j\]/,
    "source_dtype <= 2) {\n quad[j]",
  ),
  mistake("the others of pairs as f16", ["turnedAlike"], /source_dtype == 2 \? float\(as_type/, "true ? float(as_type"),
  mistake(
    "any size from f32",
    ["any", "anyAlike"],
    /load_element\(row\.x, i, source_dtype\)/,
    "load_element(row.x, i, 1)",
  ),
];

testTable("a mistake is found where", mistakes, ({ names, patch }) => {
  for (const name of names) expect(isRight(name, [patch])).toBe(false);
});
