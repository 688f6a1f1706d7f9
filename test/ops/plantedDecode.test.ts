import { afterAll, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { Pass } from "../../src/device/pass.ts";
import { flashAttnDecode, type Tensor } from "../../src/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { type CacheFormat, type DecodeCase, DecodeScene, judgeDecode } from "../helpers/decode.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { plant, type ShaderPatch, shaderFiles, shaderText } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the decode kernels, among them those that others have made: the judgement that other tests make
// of the kernels' results must catch each of them.

const ofLanes = openWith({ SOFTMETAL_MATRIX_UNITS: "0" });
const ofMatrices = openWith({ SOFTMETAL_MATRIX_UNITS: "1" });
afterAll(() => {
  for (const device of [ofLanes, ofMatrices]) device.dispose();
});

const attendFile = "flash_attn_decode.metal";
const matrixFile = "flash_attn_decode_matrices.metal";
const reduceFile = "flash_attn_decode_reduce.metal";

const dense: DecodeCase = {
  headDim: 64,
  heads: 4,
  kvHeads: 2,
  rows: 2,
  lengths: [300, 45],
  capacity: 310,
  k: "f32",
  v: "f16",
};
const coded = (bits: 3 | 4 | 8): CacheFormat => ({
  bits,
  packing: bits === 3 ? "dense" : bits === 4 ? "nibble" : "byte",
});
const ring: DecodeCase = { ...dense, isSliding: true, capacity: 40, lengths: [45, 70] };
const quantized: DecodeCase = { ...dense, k: coded(4), v: coded(3), lengths: [45], capacity: 50 };
const wide: DecodeCase = { ...dense, headDim: 512, k: coded(4), v: coded(4), lengths: [40], capacity: 44 };
const eightBits: DecodeCase = { ...quantized, k: coded(8), v: coded(8) };
const windowed: DecodeCase = { ...dense, window: 33 };
const capped: DecodeCase = { ...dense, softcap: 0.5 };
const sunk: DecodeCase = { ...dense, sink: 2 };
const sloped: DecodeCase = { ...dense, hasSlopes: true };
const tree: DecodeCase = { ...dense, treeColumns: 7 };
const paged: DecodeCase = { ...dense, pageTokens: 16, capacity: 320 };
const outnumbered: DecodeCase = { ...dense, rows: 16, lengths: [3, 20], capacity: 32 };

/** Over codes, by products of matrices. */
const matrixCase: DecodeCase = { ...quantized, rows: 1, lengths: [300, 45], capacity: 310 };

/** Which function constants a kernel of a case has. */
const formatOf = (format: CacheFormat): number => {
  if (typeof format === "string") return { f32: 1, f16: 2, bf16: 3 }[format];
  return format.packing === "byte" ? format.bits | 8 : format.bits;
};

/** What the judgement says of a case, run by shaders changed by `patches`. */
function failure(entry: DecodeCase, file: string, patches: readonly ShaderPatch[]): string | undefined {
  const device = file === matrixFile ? ofMatrices : ofLanes;
  const scene = new DecodeScene(device, entry);
  const { q, k, v, out, lse, seqLens, blockTable, sinks, alibiSlopes, treeMask } = scene.args;
  // The grid and the parameters are those of the call.
  using described = device.pass();
  flashAttnDecode(described, scene.args);
  const { native, handle } = Pass.use(described);
  using pass = device.pass();
  const scratch = device.tensor("f32", [1 << 18]);
  const outputs = scratch.slice(1 << 12, 1 << 18);
  const rows = (cache: typeof k) => ("packed" in cache ? cache.packed : cache);
  const norms = (cache: typeof k): Tensor => ("packed" in cache ? cache.norms : q);
  const read = (tensor: Tensor) => ({ tensor, access: "read" }) as const;
  const values = v ?? k;
  for (const [i, { kernel, grid, threadsPerThreadgroup }] of described.describe().entries()) {
    const ofFile = i > 0 ? reduceFile : kernel.includes("_matrices_") ? matrixFile : attendFile;
    const name = ofFile === file ? plant(device, ofFile, kernel, patches) : kernel;
    const constants = [
      { index: 420, dtype: "u32", value: formatOf(entry.k) },
      { index: 421, dtype: "u32", value: formatOf(entry.v) },
      { index: 422, dtype: "bool", value: true },
    ] as const;
    const pipeline = device.pipeline(name, i === 0 ? { constants: [...constants] } : {});
    const params = argumentBytes(native, handle, i, 5);
    pass.dispatch(pipeline, {
      buffers:
        i === 0
          ? {
              0: read(q),
              1: read(rows(k)),
              2: read(norms(k)),
              3: read(rows(values)),
              4: read(norms(values)),
              6: out,
              7: lse as Tensor,
              8: read(seqLens ?? q),
              9: read(blockTable ?? q),
              10: read(sinks ?? q),
              11: read(alibiSlopes ?? q),
              12: read(treeMask ?? q),
              13: scratch.slice(0, 1 << 12),
              14: outputs,
            }
          : { 0: read(scratch.slice(0, 1 << 12)), 1: read(outputs), 2: read(sinks ?? q), 6: out, 7: lse as Tensor },
      bytes: { 5: params },
      form: "threadgroups",
      grid,
      threads: threadsPerThreadgroup,
    });
  }
  pass.commitAndWait();
  const fault = judgeDecode(scene);
  scene.dispose();
  return fault;
}

interface Mistake {
  readonly name: string;
  readonly entry: DecodeCase;
  readonly file: string;
  readonly patches: readonly ShaderPatch[];
}

const attend = (name: string, entry: DecodeCase, find: RegExp, replace: string): Mistake => ({
  name,
  entry,
  file: attendFile,
  patches: [{ find, replace }],
});
const reduce = (name: string, entry: DecodeCase, find: RegExp, replace: string): Mistake => ({
  name,
  entry,
  file: reduceFile,
  patches: [{ find, replace }],
});

const matrices = (name: string, changes: Partial<DecodeCase>, find: RegExp, replace: string): Mistake => ({
  name: `matrices: ${name}`,
  entry: { ...matrixCase, ...changes },
  file: matrixFile,
  patches: [{ find, replace }],
});

/** The same over values. */
const values =
  (dtype: "f16" | "bf16") =>
  (name: string, changes: Partial<DecodeCase>, find: RegExp, replace: string): Mistake => {
    const mistake = matrices(name, { k: dtype, v: dtype, ...changes }, find, replace);
    return { ...mistake, name: `${mistake.name}, over ${dtype}` };
  };
const [halves, bfloats] = [values("f16"), values("bf16")];

/** Parts of a query from the one of a number on. */
const partsOfQuery = /part = take_part<Element>\(rest\);/;
const withoutPartsFrom = (first: number): string =>
  `part = p < ${first} ? take_part<Element>(rest) : vec<Element, 2>(0.0f);`;

const mistakes: readonly Mistake[] = [
  matrices("the lower half of q dropped", {}, partsOfQuery, withoutPartsFrom(1)),
  matrices(
    "the lower half of centroids dropped",
    {},
    /half2\(high, half\(centroid - float\(high\)\)\)/,
    "half2(high, half(0.0f))",
  ),
  matrices("the lower half of weights dropped", {}, /low = take_part<T>\(rest\);/, "low = vec<T, 2>(0.0f);"),
  matrices("weights without norms of V", {}, /weights\[m\] \* norm_v\[m\] \* next_power/, "weights[m] * next_power"),
  matrices(
    "the weights of neighbouring keys in each other's place",
    {},
    /at\.lane_of_row\(m % 2 \* 4 \+ at\.row \/ 2\)/,
    "at.lane_of_row(m % 2 * 4 + (at.row / 2 ^ 1))",
  ),
  matrices("the scale of sums forgotten", {}, /power\[i\] = next_power;/, ""),
  matrices("keys that a row does not see", { rows: 4 }, /leaf \+ kLeafKeys > end_for_all/, "false"),
  matrices("keys before the window", { window: 33 }, /leaf < first_for_all/, "false"),
  matrices("keys of the leaf before", {}, /clamp\(leaf \+ kLeafStep \+ int\(lane\)/, "clamp(leaf + int(lane)"),
  matrices("scores of the other half of a leaf", {}, /\(is_low \? 16 : 0\)/, "(is_low ? 0 : 16)"),
  matrices(
    "queries of the next head",
    {},
    /const uint first_of_lane = at\.pair % 2 \* 2/,
    "const uint first_of_lane = 2 - at.pair % 2 * 2",
  ),
  matrices(
    "rows of a leaf in pieces taken for a run",
    { pageTokens: 16, capacity: 320 },
    /is_run\(simd_all\(row_of_lane == first \+ lane\)\)/,
    "is_run(true)",
  ),
  matrices("the table of K taken for that of V", { k: coded(8) }, /\? format_k\.words_of_table\(\)/, "? 0"),
  matrices("centroids of other codes", { k: coded(8) }, /\/ \(format\.copies\(\) \/ 4\)/, "/ (format.copies() / 2)"),
  matrices("four codes of eight read twice", { v: coded(8) }, /loaded\[next \/ 32\], /, "loaded[bit / 32], "),
  matrices("a run taken to begin with a word", { headDim: 64, v: coded(3) }, /step < 32 \? part \* bits % 32 : 0/, "0"),
  matrices("the states of SIMD groups not rescaled", {}, /exp_of_difference\(of_group\.x - joined\.maximum\)/, "1.0f"),
  matrices(
    "the keys of a SIMD group left out",
    {},
    /g < kQueries; g\+\+\) \{\s+const float2/,
    "g < kQueries - 1; g++) { const float2",
  ),
  halves("the lower half of q dropped", {}, partsOfQuery, withoutPartsFrom(1)),
  bfloats("the third part of q dropped", {}, partsOfQuery, withoutPartsFrom(2)),
  bfloats("parts of what others have taken", {}, /rest -= float2\(part\);/, ""),
  bfloats(
    "a factor of weights twice",
    {},
    /parts\[0\], rows\[0\], weights\[m \* factors \+ r\]/,
    "parts[0], rows[0], weights[m * factors]",
  ),
  bfloats("a factor of q twice", {}, /rows\[u\]\[two\], query\[u\]\[r\]/, "rows[u][two], query[u][0]"),
  halves(
    "keys of V in each other's place",
    {},
    /m % 2 \* 8 \* dense\.row \+ 8 \* j/,
    "(1 - m % 2) * 8 * dense.row + 8 * j",
  ),
  halves(
    "the first half of a leaf in place of the second",
    {},
    /runs\[part \* \(runs_of_row \/ parts\) \+ n\]/,
    "runs[n]",
  ),
  halves("rows of another key", {}, /leaf\.of<rows_of_load>\(lane \/ runs_of_row,/, "leaf.of<rows_of_load>(0,"),
  halves(
    "the coordinates of queries in another order",
    {},
    /uint place\(uint d\) \{ return d; \}/,
    "uint place(uint d) { return d ^ 1; }",
  ),
  halves("the sums of another coordinate", {}, /return 8 \* j \+ row;/, "return 8 * j + 7 - row;"),
  halves(
    "the norms of the leaf before, beside codes of V",
    { headDim: 128, v: coded(4) },
    /(if \(!is_ahead\) \{\s+keys\.load\(k, rows, at\);)\s+norms\.load<[^;]*;/,
    "$1",
  ),
  halves(
    "the unit of codes in K, beside codes of V",
    { v: coded(8) },
    /Keys::is_coded \? (unit_of_codes<D>\(params\) \/ kCentroidUnit) : 1\.0f/,
    "$1",
  ),
  halves(
    "the unit of codes in V, beside codes of K",
    { k: coded(8) },
    /\(Values::is_coded \? kCentroidUnit : 1\.0f\)/,
    "kCentroidUnit",
  ),
  attend("ring one slot late", ring, /position % capacity : position/, "(position + 1) % capacity : position"),
  attend(
    "the slot about to be written taken for the oldest",
    ring,
    /max\(0, length - capacity\)/,
    "max(0, length - capacity - 1)",
  ),
  attend("the oldest key of a ring left out", ring, /max\(0, length - capacity\)/, "max(0, length - capacity + 1)"),
  attend("the unit of D = 512 wrong by 22", wide, /D <= 256 \? 1\.0f \/ sqrt/, "D <= 512 ? 1.0f / sqrt"),
  attend("the first norm for both halves", wide, /norms\[row_of_key \* 2 \+ 1\]/, "norms[row_of_key * 2]"),
  attend("the first norm of V for both halves", wide, /norms\[row \* norm_count \+ n\]/, "norms[row * norm_count]"),
  attend("a codebook of 232 entries", eightBits, /word >> 8 \* i & 255/, "min(word >> 8 * i & 255, 231u)"),
  attend("q not rotated", quantized, /sign_lanes<D>\(values, lane\);\s+hadamard_lanes<D>\(values, lane\);/, ""),
  attend(
    "a rotation that takes what other lanes have before they have it",
    quantized,
    /const float other = simd_shuffle_xor\(values\[i\], distance\);/,
    "const float other = values[i];",
  ),
  attend("signs of q left out", quantized, /sign_lanes<D>\(values, lane\);/, ""),
  attend("the output not rotated back", quantized, /hadamard_lanes<D>\(output, lane\);/, ""),
  attend("signs of the output left out", quantized, /sign_lanes<D>\(output, lane\);/, ""),
  attend(
    "the norm of another key of K",
    quantized,
    /simd_shuffle\(norm, ushort\(step \* per_step \+ lane % per_step\)\)/,
    "simd_shuffle(norm, ushort(0))",
  ),
  attend(
    "norms of V not applied",
    quantized,
    /weights\[0\] \* simd_shuffle\(norm_of_lane\[n\], key_of_lane\)/,
    "weights[0]",
  ),
  attend(
    "a sink a head and once more",
    { ...sunk, lengths: [45], capacity: 50 },
    /exp_of_difference\(sink - largest\)\)/,
    "2.0f * exp_of_difference(sink - largest))",
  ),
  reduce(
    "a sink once a block",
    sunk,
    /exp_of_difference\(sink - largest\)\)/,
    "params.n_blocks * exp_of_difference(sink - largest))",
  ),
  reduce("the sink of another head", sunk, /query \/ params\.n_q % params\.n_heads/, "0"),
  reduce(
    "the sink scaled",
    sunk,
    /const float sink = sinks\[head\];/,
    "const float sink = sinks[head] * params.scale;",
  ),
  reduce("an epsilon in the normaliser", dense, /own \/ sum;/, "own / (sum + 1e-3f);"),
  reduce("blocks not rescaled", dense, /exp_of_difference\(maximum - maximum_of_all\)/, "1.0f"),
  reduce("the last block left out", dense, /first \+ lane < blocks \?/, "first + lane + 1 < blocks ?"),
  attend(
    "a mask of -65504",
    outnumbered,
    /rule\.of\(scores\[step\], key\) : -INFINITY/,
    "rule.of(scores[step], key) : -65504.0f",
  ),
  {
    name: "keys past the length multiplied by 0",
    entry: { ...dense, lengths: [37], capacity: 64 },
    file: attendFile,
    patches: [
      {
        find: /clamp\(leaf \+ int\(lane\), first_key, end_key - 1\)/,
        replace: "min(leaf + int(lane), int(params.capacity) - 1)",
      },
      { find: /visible\.sees\(key\) \? scores\[step\] : -1\.0f/, replace: "scores[step]" },
    ],
  },
  attend(
    "keys that a row does not see weighed",
    { ...ring, rows: 1 },
    /simd_shuffle\(weights\[0\], source\) >= 0\.0f/,
    "simd_shuffle(weights[0], source) >= -2.0f",
  ),
  attend("softcap ignored", capped, /params\.softcap,/, "0.0f,"),
  attend(
    "softcap on what slopes add",
    { ...capped, hasSlopes: true },
    /tanh\(score \/ softcap\)/,
    "tanh((score + slope * float(key - position)) / softcap)",
  ),
  attend(
    "the batch of K and V dropped",
    dense,
    /\(batch \* params\.n_kv_heads \+ head\) \* params\.capacity/,
    "head * params.capacity",
  ),
  attend("the length of another sequence", dense, /seq_lens\[batch\]/, "seq_lens[0]"),
  attend(
    "K and V of another group",
    dense,
    /cache\(params, block_table, batch, kv_head\)/,
    "cache(params, block_table, batch, params.n_kv_heads - 1 - kv_head)",
  ),
  attend(
    "pages in the order of positions",
    paged,
    /uint\(clamp\(pages\[page_of_sequence\], 0, int\(n_pages\) - 1\)\)/,
    "min(page_of_sequence, n_pages)",
  ),
  attend("the table of another sequence", paged, /pages \+= batch \* \(capacity \/ page_tokens\)/, "pages += 0"),
  attend("heads of a page mixed up", paged, /\(page \* n_kv_heads \+ kv_head\)/, "(page * n_kv_heads)"),
  attend(
    "the window one key short",
    windowed,
    /max\(sequence\.first, position - int\(params\.window\) \+ 1\)/,
    "max(sequence.first, position - int(params.window) + 2)",
  ),
  attend(
    "the window one key long",
    windowed,
    /max\(sequence\.first, position - int\(params\.window\) \+ 1\)/,
    "max(sequence.first, position - int(params.window))",
  ),
  attend(
    "causal one key short",
    dense,
    /high = has_tree \? sequence\.length - 1 : position;/,
    "high = has_tree ? sequence.length - 1 : position - 1;",
  ),
  attend(
    "no causal order of rows",
    dense,
    /high = has_tree \? sequence\.length - 1 : position;/,
    "high = sequence.length - 1;",
  ),
  attend("slopes the other way", sloped, /float\(key - position\)/, "float(position - key)"),
  attend("no distance to a part", { ...sloped, alibiDistance: 3 }, / \+ params\.alibi_distance/, ""),
  attend("the slope of another head", sloped, /alibi_slopes\[head_of_lane\]/, "alibi_slopes[kv_head]"),
  attend(
    "the tree one key off",
    tree,
    /sequence\.length - int\(params\.tree_columns\) : sequence/,
    "sequence.length - int(params.tree_columns) + 1 : sequence",
  ),
  attend("the tree of another row", tree, /tree_mask\[batch \* params\.n_q \+ row\]/, "tree_mask[batch * params.n_q]"),
  attend("the output not rescaled", { ...dense, spread: 4 }, /if \(simd_any\(factor != 1\.0f\)\)/, "if (false)"),
  attend("the sum not rescaled", { ...dense, spread: 4 }, /fma\(softmax\.sum, factor, sum\)/, "softmax.sum + sum"),
  attend(
    "the second half of a block left out",
    dense,
    /second_halves\[pair\]\.template join<QUERIES>\(lane, softmax, output\);/,
    "",
  ),
  attend(
    "the second half of another pair",
    dense,
    /second_halves\[pair\]\.template join/,
    "second_halves[kMostPairs - 1].template join",
  ),
  // A GPU may be done with the second half first.
  ...(isOtherGpu
    ? []
    : [
        attend(
          "no barrier between the halves",
          dense,
          /threadgroup_barrier\(mem_flags::mem_threadgroup\);(\s+if \(half_of_block)/,
          "$1",
        ),
      ]),
  attend(
    "the second half not rescaled",
    { ...dense, spread: 4 },
    /exp_of_difference\(maximum\[lane\] - reference\)/,
    "1.0f",
  ),
  attend(
    "the first half not rescaled",
    { ...dense, spread: 4 },
    /exp_of_difference\(softmax\.maximum - reference\);\s+const float second/,
    "1.0f; const float second",
  ),
  attend("log2(e) left out", dense, /exp2\(x \* M_LOG2E_F\)/, "exp2(x)"),
  attend("the scale dropped", dense, /params\.scale \* \(K_CODES/, "1.0f * (K_CODES"),
];

const battery: readonly DecodeCase[] = [
  dense,
  matrixCase,
  { ...matrixCase, k: "f16", v: "f16" },
  { ...matrixCase, k: "bf16", v: "bf16" },
  { ...matrixCase, headDim: 128, k: "f16", v: coded(4) },
  { ...matrixCase, k: coded(8), v: "f16" },
  ring,
  quantized,
  wide,
  eightBits,
  windowed,
  capped,
  sunk,
  sloped,
  { ...sloped, alibiDistance: 3 },
  tree,
  paged,
  outnumbered,
  { ...capped, hasSlopes: true },
  { ...dense, spread: 4 },
];

testTable("the kernels as they are", [{ name: "pass" }], () => {
  expect(battery.flatMap((entry) => failure(entry, "", []) ?? [])).toEqual([]);
  expect(battery.flatMap((entry) => failure(entry, matrixFile, []) ?? [])).toEqual([]);
});

/** Numbers of a call that a kernel does not take from constant memory, where alone bytes may lie that a pass keeps. */
const outsideConstant = (text: string): string[] =>
  [...text.matchAll(/(\w+) \w*Params\s*[&*]\s*\w+\s*\[\[/g)].flatMap(([found, space]) =>
    space === "constant" ? [] : [found],
  );

test("numbers lie in constant memory, and where they do not it shows", () => {
  let found = 0;
  for (const file of shaderFiles(".metal")) {
    const text = shaderText(file);
    expect(outsideConstant(text)).toEqual([]);
    const parameter = /constant (\w*Params &)/;
    if (!parameter.test(text)) continue;
    found += 1;
    expect(outsideConstant(text.replaceAll(/constant (\w*Params &\w+ \[\[)/g, "const device $1"))).not.toEqual([]);
  }
  expect(found).toBeGreaterThan(5);
});

testTable("the judgement catches", mistakes, ({ entry, file, patches }) => {
  expect(failure(entry, file, patches)).toBeDefined();
});
