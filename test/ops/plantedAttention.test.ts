import { afterAll, expect } from "bun:test";
import { Pass } from "../../src/device/pass.ts";
import { type AttentionDType, classifyMaskTiles, Device, type Tensor } from "../../src/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import {
  encodePrefill,
  headMajorRows,
  judge,
  type PrefillCase,
  type PrefillScene,
  prefillScene,
} from "../helpers/prefill.ts";
import { rowOf } from "../helpers/prefillOptions.ts";
import { type Mistake, oneMistake, plant } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the attention kernel: the judgement that other tests make
// of its results must catch each of them.

const device = Device.open();
afterAll(() => device.dispose());

const file = "flash_attn_prefill.metal";
const { kernel } = rowOf(256, "bf16");
/** Whose tiles of K and V have memory of their own, and are copied while the others are multiplied. */
const { kernel: copying } = rowOf(128, "bf16");
/** Which multiplies P in two parts. */
const { kernel: splitting } = rowOf(64, "f16");
/** Whose SIMD groups have a tile each for both halves of the columns, of K and of V. */
const { kernel: halving } = rowOf(512, "bf16");

const plain: PrefillCase = {
  row: rowOf(256, "bf16"),
  batch: 2,
  heads: 4,
  kvHeads: 2,
  qL: 33,
  kL: 45,
  capacity: 60,
  causal: true,
  qOffsetInK: 12,
  layout: "head-major",
  values: "normal",
  pattern: "random",
  maskShape: "by-head",
  tileClasses: false,
  seed: 5,
};
const masked: PrefillCase = { ...plain, row: rowOf(256, "bf16", "additive"), causal: false };

/** What every mistake runs on. */
const battery: readonly PrefillCase[] = [
  plain,
  { ...plain, causal: false, values: "rising" },
  { ...plain, causal: false, values: "wide", capacity: 45 },
  masked,
  { ...masked, maskShape: "by-batch-and-head" },
  { ...masked, pattern: "biases" },
  { ...masked, pattern: "last-tile", tileClasses: true },
  { ...masked, pattern: "tiles", maskShape: "by-batch-and-head", tileClasses: true },
  { ...masked, pattern: "rows", causal: true },
];

/** What mistakes with whole tiles run on, whose rows begin at multiples of 16 bytes. */
const copied: readonly PrefillCase[] = [
  { ...plain, row: rowOf(128, "bf16"), kL: 77, capacity: 80, causal: false },
  { ...plain, row: rowOf(128, "bf16"), kL: 80, capacity: 80, qOffsetInK: 47 },
  { ...masked, row: rowOf(128, "bf16", "additive"), kL: 80, capacity: 80, pattern: "tiles", tileClasses: true },
];

/** What mistakes with P in two parts run on. */
const inParts = battery.slice(0, 3).map((entry) => ({ ...entry, row: rowOf(64, "f16") }));

const halved = copied.map((entry) => ({ ...entry, row: rowOf(512, "bf16", entry.row.mask) }));

/** The bytes of AttnParams and AttnMaskParams that the library hands to the kernel for a head-major case. */
function packed(
  entry: PrefillCase,
  scene: PrefillScene,
  out: Tensor<AttentionDType>,
): { readonly params: Uint8Array; readonly maskParams: Uint8Array } {
  using pass = device.pass();
  const classes = encodePrefill(pass, entry, scene, out);
  const dispatch = pass.describe().length - 1;
  classes?.dispose();
  const { native, handle } = Pass.use(pass);
  const bytes = (index: number) => argumentBytes(native, handle, dispatch, index);
  return { params: bytes(4), maskParams: bytes(5) };
}

/** What the judgement says of a kernel, for each case that fails. */
function failures(name: string, cases = battery): string[] {
  return cases.flatMap((entry) => {
    const { row, batch, heads, qL, kL } = entry;
    const scene = prefillScene(device, entry);
    const { q, k, v, mask } = scene;
    using out = device.tensor(row.dtype, q.shape);
    using pass = device.pass();
    const classes =
      mask === undefined || !entry.tileClasses ? undefined : classifyMaskTiles(pass, { mask, headDim: row.headDim });
    const flags = [
      [200, qL % row.queryTile === 0],
      [201, kL % row.keyTile === 0],
      [300, mask !== undefined],
      [301, entry.causal],
      [303, classes !== undefined],
      [304, false],
      [305, cases !== battery],
      [306, false],
      [307, cases === inParts],
    ] as const;
    using pipeline = device.pipeline(name, {
      constants: flags.map(([index, value]) => ({ index, dtype: "bool", value })),
    });
    const { params, maskParams } = packed(entry, scene, out);
    pass.dispatch(pipeline, {
      buffers: {
        0: q,
        1: k,
        2: v,
        3: out,
        ...(mask === undefined ? {} : { 6: mask }),
        ...(classes === undefined ? {} : { 7: classes.tensor }),
      },
      bytes: { 4: params, ...(mask === undefined ? {} : { 5: maskParams }) },
      form: "threadgroups",
      grid: [heads, batch, Math.ceil(qL / row.queryTile)],
      threads: [32, row.simdgroups, 1],
    });
    pass.commitAndWait();
    const failure = judge(entry, scene.problem, headMajorRows(entry, out));
    classes?.dispose();
    scene.dispose();
    return failure === undefined ? [] : [failure];
  });
}

const mistakes: readonly Mistake[] = [
  oneMistake("log2(e) applied twice", /params\.scale \* M_LOG2E_F/, "params.scale * M_LOG2E_F * M_LOG2E_F"),
  oneMistake("log2(e) not applied", /params\.scale \* M_LOG2E_F/, "params.scale"),
  oneMistake("log2(e) not applied to biases", /score \+ M_LOG2E_F \* float\(bias\)/, "score + float(bias)"),
  oneMistake("scale dropped", /params\.scale \* M_LOG2E_F/, "M_LOG2E_F"),
  oneMistake("causal one key short", /position - first_key \+ 1\)/, "position - first_key)"),
  oneMistake("causal one key long", /position - first_key \+ 1\)/, "position - first_key + 2)"),
  oneMistake(
    "mask ignored in the last key tile",
    /if \(has_mask && tile_class/,
    "if (has_mask && tile + 1 < params.NK && tile_class",
  ),
  oneMistake("mask of another head", /head \* mask_params\.M_strides\[1\] \+/, "kv_head * mask_params.M_strides[1] +"),
  oneMistake("mask of another batch", /batch \* mask_params\.M_strides\[0\] \+/, "0 * mask_params.M_strides[0] +"),
  oneMistake(
    "mask of another row",
    /min\(first_row \+ row \+ 8 \* r, params\.qL - 1\)/,
    "min(first_row + row + 8 * r + 1, params.qL - 1)",
  ),
  oneMistake("no causal mask", /if \(do_causal && first_key/, "if (false && first_key"),
  oneMistake("K and V of another group", /head \/ params\.gqa_factor/, "head % params.gqa_factor"),
  oneMistake("accumulator not rescaled", /elements\[0\] \*= factor;\s+elements\[1\] \*= factor;/, ""),
  oneMistake("row sum not rescaled", /softmax\.sum \*= factor;/, ""),
  oneMistake("half of the row sum", /value \+= simd_shuffle_xor\(value, 8\);/, ""),
  oneMistake("running maximum not carried", /softmax\.reference = moves \? maximum - unit : softmax\.reference;/, ""),
  oneMistake(
    "no barrier before parts of scores are added up",
    /threadgroup_barrier\(mem_flags::mem_threadgroup\);(?=\s+if \(kHalves && is_whole)/,
    "",
  ),
  // Whether the SIMD groups of a GPU are then too late is chance.
  ...(isOtherGpu
    ? []
    : [
        {
          name: "no barrier before K is loaded",
          patches: [
            { find: /wait_for_tile<kAlone>\(\);(?=\s+copy_tile<T, BK, DT, LD, THREADS>\(first, k_rows)/, replace: "" },
            { find: /(?<=\} else \{\s+)wait_for_tile<kAlone>\(\);(?=\s+#pragma clang loop)/, replace: "" },
          ],
        },
      ]),
  oneMistake("tile class 2 taken for 0", /tile_class == kTileBlocked/, "tile_class != 1"),
  oneMistake("tile classes of another head", /head : 0\);/, "0 : 0);"),
  oneMistake("last tile of keys left out", /int key_tiles = params\.NK;/, "int key_tiles = params.NK - 1;"),
  oneMistake(
    "the first rows of Q in registers for all",
    /first \+ \(group_row \+ n % R \* 8\) \* LP/,
    "first + n % R * 8 * LP",
  ),
  oneMistake("Q in registers left out", /multiply_scores<T, R, TK, QT, LD>\(q, first, scores\);/, ""),
  oneMistake("the other columns of Q with the first ones of K", /first \+ QT \* 8, scores/, "first, scores"),
  oneMistake(
    "last key not attended",
    /lane\.column, valid_keys\);\s+\}\s+if \(do_causal/,
    "lane.column, valid_keys - 1); } if (do_causal",
  ),
  oneMistake("values of the first tile", /v_rows = V \+ first_key \* v_stride/, "v_rows = V"),
  oneMistake("key remainder not masked", /if \(valid_keys < BK\)/, "if (false)"),
  oneMistake("attended though blocked throughout", /row_sum == 0 \? 0\.0f : 1\.0f \/ row_sum/, "1.0f / row_sum"),
  {
    name: "capacity used as length",
    patches: [
      {
        find: /int key_tiles = params\.NK;/,
        replace: "int key_tiles = (int(params.K_strides[1] / params.K_strides[2]) + BK - 1) / BK;",
      },
      { find: /keys - first_key\)/, replace: "int(params.K_strides[1] / params.K_strides[2]) - first_key)" },
    ],
  },
];

testTable("the kernel as it is", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, kernel, []))).toEqual([]);
});

testTable("the judgement catches", mistakes, ({ patches }) => {
  expect(failures(plant(device, file, kernel, patches))).not.toEqual([]);
});

const mistakesInCopies: readonly Mistake[] = [
  oneMistake(
    "the tile's own keys as the next",
    /\(first, next_k_rows(?=, k_stride, thread_index\);\s+\}\s+if \(contributes\) \{\s+float2)/,
    "(first, k_rows",
  ),
  oneMistake("K as V", /k_rows \+ DT : v_rows/, "k_rows + DT : k_rows"),
  oneMistake("keys of a tile that is skipped for the next one's", /is_ahead = false;(?=\s+continue)/, ""),
  ...(isOtherGpu
    ? []
    : [
        oneMistake(
          "the next keys copied while SIMD groups multiply",
          /(?<=\} else if \(is_whole\) \{)\s+wait_for_tile<kAlone>\(\);/,
          "",
        ),
        oneMistake(
          "keys multiplied before all are there",
          /wait_for_tile<kAlone>\(\);(?=\s+\/\/ A tile is copied while)/,
          "",
        ),
      ]),
];

testTable("whole tiles as they are", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, copying, []), copied)).toEqual([]);
});

testTable("the judgement catches in whole tiles", mistakesInCopies, ({ patches }) => {
  expect(failures(plant(device, file, copying, patches), copied)).not.toEqual([]);
});

const mistakesInParts: readonly Mistake[] = [
  oneMistake("the upper part of P twice", /parts\[part\]\[r \* TK \+ k\]/, "parts[1][r * TK + k]"),
  oneMistake("what the upper part has in the lower one too", /T\(p - float\(of_high\[i\]\)\)/, "T(p)"),
  oneMistake("the keys of V exchanged", /, v\[k\], output/, ", v[TK - 1 - k], output"),
];

testTable("P in two parts", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, splitting, []), inParts)).toEqual([]);
});

testTable("the judgement catches in two parts", mistakesInParts, ({ patches }) => {
  expect(failures(plant(device, file, splitting, patches), inParts)).not.toEqual([]);
});

const mistakesInHalves: readonly Mistake[] = [
  oneMistake("the first half of K twice", /k_rows \+ DT : v_rows/, "k_rows : v_rows"),
  oneMistake("the first half of V twice", /\(second, v_rows \+ DT/, "(second, v_rows"),
  oneMistake("K as the first half of V", /\(first, v_rows, v_stride/, "(first, k_rows, k_stride"),
  oneMistake(
    "the tile's own keys as the next",
    /\(first, next_k_rows(?=, k_stride, thread_index\);\s+\}\s+\}\s+if \(contributes\))/,
    "(first, k_rows",
  ),
  oneMistake("the first half of Q twice", /Q \+ QT \* 8/, "Q"),
  oneMistake(
    "the second half of K with no query",
    /multiply_scores<T, R, TK, TD - QT, LQ, LD>\(q_rows, kHalves[^;]+;/,
    "",
  ),
  oneMistake("the first half of K with the second one's queries", /kHalves \? second : first/, "first"),
  ...(isOtherGpu
    ? []
    : [
        oneMistake(
          "parts of scores put where others still read",
          /threadgroup_barrier\(mem_flags::mem_threadgroup\);(?=\s+\}\s+if \(contributes\) \{\s+put_part)/,
          "",
        ),
      ]),
  oneMistake("the second half of V added to the first", /output \+ \(TD - TT\)/, "output"),
];

testTable("halves of tiles as they are", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, halving, []), halved)).toEqual([]);
});

testTable("the judgement catches in halves of tiles", mistakesInHalves, ({ patches }) => {
  expect(failures(plant(device, file, halving, patches), halved)).not.toEqual([]);
});
