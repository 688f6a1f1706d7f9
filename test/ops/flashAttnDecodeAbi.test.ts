import { afterAll, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  type FlashAttnDecodeParams,
  type MAFlashAttnDecodeArgs,
  packMAFlashAttnDecodeArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, tensorRecord } from "../helpers/abi.ts";
import { type AbiRefusal, expectOk, expectRefused } from "../helpers/abiRefusals.ts";
import { testTable } from "../helpers/table.ts";

// What another caller of the C ABI can do wrong with decode attention: numbers that leave its tensors, fields that
// follow from others, tensors that share bytes in different dtypes.

const scene = new NativeScene();
afterAll(() => scene.close());

const { native } = scene;

// Two sequences, 4 heads on 2, a query row, pages of 16 tokens: 5 of them in the pool, 2 a sequence, D = 64.
const [batch, heads, kvHeads, headDim, pages, pageTokens, perSequence] = [2, 4, 2, 64, 5, 16, 2];
const sizes = {
  q: batch * heads * headDim * 4,
  k: pages * kvHeads * pageTokens * headDim * 2,
  v: pages * kvHeads * pageTokens * headDim * 2,
  out: batch * heads * headDim * 4,
  lse: batch * heads * 4,
  seqLens: batch * 4,
  blockTable: batch * perSequence * 4,
  sinks: heads * 4,
  alibiSlopes: heads * 4,
  treeMask: batch * 4,
} as const;
type Name = keyof typeof sizes;
const names = Object.keys(sizes) as Name[];
const dtypes: Readonly<Record<Name, number>> = {
  q: dtypeCodes.f32,
  k: dtypeCodes.f16,
  v: dtypeCodes.f16,
  out: dtypeCodes.f32,
  lse: dtypeCodes.f32,
  seqLens: dtypeCodes.i32,
  blockTable: dtypeCodes.i32,
  sinks: dtypeCodes.f32,
  alibiSlopes: dtypeCodes.f32,
  treeMask: dtypeCodes.u32,
};
const buffers = Object.fromEntries(names.map((name) => [name, scene.buffer(sizes[name])])) as Record<
  Name,
  ReturnType<NativeScene["buffer"]>
>;
const whole = (name: Name) => tensorRecord(buffers[name].handle, dtypes[name], 0, sizes[name]);

const params: FlashAttnDecodeParams = {
  n_heads: heads,
  n_kv_heads: kvHeads,
  head_dim: headDim,
  n_q: 1,
  capacity: perSequence * pageTokens,
  seq_len: 0,
  is_sliding: 0,
  window: 0,
  page_tokens: pageTokens,
  n_pages: pages,
  tree_columns: 3,
  alibi_distance: 0,
  scale: 0.125,
  softcap: 0,
  scale_factor_d512: 1,
};
const record: MAFlashAttnDecodeArgs = {
  q: whole("q"),
  k: whole("k"),
  normsK: undefined,
  v: whole("v"),
  normsV: undefined,
  out: whole("out"),
  lse: whole("lse"),
  seqLens: whole("seqLens"),
  blockTable: whole("blockTable"),
  sinks: whole("sinks"),
  alibiSlopes: whole("alibiSlopes"),
  treeMask: whole("treeMask"),
  params,
  batch,
  packingK: 0,
  bitsK: 0,
  packingV: 0,
  bitsV: 0,
};

/** A derived field, which no record has: its word behind those of FlashAttnDecodeParams, before which are 12 tensors. */
interface Overwrite {
  readonly word: number;
  readonly value: number;
}
const derivedStart = 12 * (structSizes.MATensor / 4) + 15;

function send(pass: number, spoiled: MAFlashAttnDecodeArgs, overwrite?: Overwrite): number {
  const block = new Block(structSizes.MAFlashAttnDecodeArgs);
  packMAFlashAttnDecodeArgs(block, 0, spoiled);
  if (overwrite !== undefined) block.u32[derivedStart + overwrite.word] = overwrite.value;
  return native.ma_flash_attn_decode(pass, block.bytes);
}

interface AbiCase extends AbiRefusal {
  readonly spoil: Partial<MAFlashAttnDecodeArgs>;
  readonly overwrite?: Overwrite;
}

function refused(
  name: string,
  spoil: AbiCase["spoil"],
  status: AbiCase["status"],
  argument: string,
  ...says: AbiCase["says"]
): AbiCase {
  return { name, spoil, status, argument, says };
}
const withParams = (spoil: Partial<FlashAttnDecodeParams>) => ({ params: { ...params, ...spoil } });

/** Fields that follow from others, in order, and their value here. */
const derived: readonly (readonly [field: string, right: number])[] = [
  ["q_dtype", dtypeCodes.f32],
  ["out_dtype", dtypeCodes.f32],
  // Lengths, sinks, slopes, tree and lse.
  ["present", 1 | 2 | 4 | 8 | 16],
  ["n_blocks", 1],
  ["n_tiles", 1],
];

const cases: readonly AbiCase[] = [
  ...derived.flatMap(([field, right], word) =>
    [right + 1, 2 ** 32 - 1].map((value) => ({
      ...refused(`${field} ${value}`, {}, "invalidArgument", field, value, right),
      overwrite: { word, value },
    })),
  ),
  ...names.flatMap((name) => {
    const size = name === "k" || name === "v" ? 2 : 4;
    const short = sizes[name] - size;
    return [
      refused(`${name} too short`, { [name]: { ...whole(name), lengthLow: short } }, "bufferTooSmall", name, short),
      refused(`${name} beyond its buffer`, { [name]: { ...whole(name), offsetLow: 512 } }, "bufferTooSmall", name, 512),
      refused(`${name} of no dtype`, { [name]: { ...whole(name), dtype: 77 } }, "invalidArgument", name, 77),
    ];
  }),
  refused("pages beyond the pool", withParams({ n_pages: 6 }), "bufferTooSmall", "k", sizes.k, (sizes.k / 5) * 6),
  refused(
    "pages beyond the table",
    withParams({ capacity: 3 * pageTokens }),
    "bufferTooSmall",
    "blockTable",
    sizes.blockTable,
    batch * 3 * 4,
  ),
  refused("part of a page", withParams({ capacity: 33 }), "invalidArgument", "k", 33, "blockTable", 16),
  refused("a table without pages", withParams({ page_tokens: 0 }), "invalidArgument", "blockTable", 0),
  refused("a pool of none", withParams({ n_pages: 0 }), "invalidArgument", "k", 0, 1),
  refused("a pool of 2^30 + 1", withParams({ n_pages: 2 ** 30 + 1 }), "overflow", "k", 2 ** 30 + 1, 2 ** 30),
  refused("no slot", withParams({ capacity: 0 }), "invalidArgument", "k", 0, 1),
  refused(
    "2^30 + 16 slots",
    withParams({ capacity: 2 ** 30 + pageTokens }),
    "overflow",
    "k",
    2 ** 30 + pageTokens,
    2 ** 30,
  ),
  refused(
    "a pool without a table",
    { ...withParams({ page_tokens: 0 }), blockTable: undefined },
    "invalidArgument",
    "k",
    pages,
    "blockTable",
  ),
  refused("pages without a table", { blockTable: undefined }, "invalidArgument", "blockTable", 16),
  refused("17 rows", withParams({ n_q: 17 }), "unsupported", "q", 17, 16),
  refused("33 columns", withParams({ tree_columns: 33 }), "invalidArgument", "treeColumns", 33, 32),
  refused("2^30 + 1 between", withParams({ alibi_distance: 2 ** 30 + 1 }), "invalidArgument", "alibiDistance", 2 ** 30),
  refused("3 heads of K for 4", withParams({ n_kv_heads: 3 }), "invalidArgument", "q", 4, "k", 3),
  refused("is_sliding 2", withParams({ is_sliding: 2 }), "invalidArgument", "isSliding", 2),
  // The same bytes in another dtype.
  refused(
    "out over seqLens",
    { seqLens: { ...whole("out"), dtype: dtypeCodes.i32 } },
    "invalidArgument",
    "out",
    "seqLens",
    "overlap",
  ),
  refused(
    "lse over treeMask",
    { treeMask: { ...whole("lse"), dtype: dtypeCodes.u32 } },
    "invalidArgument",
    "lse",
    "treeMask",
    "overlap",
  ),
];

const pass = scene.pass();

testTable("ma_flash_attn_decode refuses", cases, (refusal) => {
  const { spoil, overwrite } = refusal;
  expectRefused(scene, pass, Object.values(buffers), refusal, () => send(pass, { ...record, ...spoil }, overwrite));
});

test("the pass that refused all this takes the valid call; derived fields may be 0 or right", () => {
  expectOk(scene, send(pass, record));
  for (const [word, [, value]] of derived.entries()) expectOk(scene, send(pass, record, { word, value }));
  expect(scene.describe(pass)).toHaveLength(1 + derived.length);
  scene.commitAndWait(pass);
});
