import { afterAll, expect } from "bun:test";
import { Pass } from "../../src/device/pass.ts";
import { type DecodeCodes, Device, flashAttnPrefill } from "../../src/index.ts";
import { type CodeFormat, encode } from "../../src/reference/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { bitsOf } from "../helpers/elements.ts";
import { struct } from "../helpers/packed.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, rowOf } from "../helpers/prefillOptions.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the decoder of a quantized cache for prefill: attention over the rows that it makes is judged
// as the whole is, and each mistake must be seen.

const device = Device.open();
afterAll(() => device.dispose());

const file = "flash_attn_prefill_decode.metal";
const slotsOffset = struct("AttnCodeParams").fields.find(({ name }) => name === "n_slots")?.offset ?? Number.NaN;
const nibble: CodeFormat = { bits: 4, packing: "nibble" };
const dense3: CodeFormat = { bits: 3, packing: "dense" };

function caseOf(headDim: number, change: Partial<OptionCase>): OptionCase {
  return {
    ...{
      row: rowOf(headDim, "bf16"),
      heads: 4,
      kvHeads: 2,
      sequences: [0, 1].map(() => ({ rows: 5, keys: 50 })),
      storage: "linear",
    },
    ...{ isPacked: false, causal: true, hasLse: true, seed: 9, formatK: nibble, formatV: nibble },
    ...change,
  };
}

const line = caseOf(64, {});
const words = caseOf(64, { formatK: dense3, formatV: dense3 });
const windowed = caseOf(64, { window: 9 });
const ragged = caseOf(64, { sequences: [12, 50].map((keys) => ({ rows: 5, keys })) });
const pages = caseOf(64, { storage: "pages", pageTokens: 7 });
const ring = caseOf(64, { storage: "ring", capacity: 37, window: 9 });
const wide = caseOf(512, {});

/** Registers the decoder of a case, changed by `patches`; gives its name. */
const decoderOf = ({ row }: OptionCase, patches: readonly ShaderPatch[]): string =>
  plant(device, file, `flash_attn_prefill_decode_d${row.headDim}`, patches);

/** What the judgement says of attention over the rows that the kernel `decoder` makes of codes. */
function failure(entry: OptionCase, decoder: string): string | undefined {
  const scene = new OptionScene(device, entry);
  const { k, v, blockTable, ...rest } = scene.args;
  if (!("packed" in k && "packed" in v)) throw new Error("the case has no codes");
  using described = device.pass();
  flashAttnPrefill(described, scene.args);
  const { native, handle } = Pass.use(described);
  using pass = device.pass();
  const decode = (i: 0 | 1, { packed, norms }: DecodeCodes, format: CodeFormat | undefined) => {
    const dispatch = described.describe()[i];
    if (dispatch === undefined || format === undefined) throw new Error("nothing decodes the codes");
    const params = argumentBytes(native, handle, i, 2);
    const slots = new DataView(params.buffer).getUint32(slotsOffset, true);
    const rows = device.tensor("bf16", [entry.sequences.length, entry.kvHeads, slots, entry.row.headDim]);
    // What is not decoded is not read.
    bitsOf(rows).fill(encode("bf16", Number.NaN));
    using pipeline = device.pipeline(decoder, { constants: [{ index: 430, dtype: "u32", value: format.bits }] });
    pass.dispatch(pipeline, {
      buffers: { 0: packed, 1: norms, 3: rows, 4: rest.seqLens ?? norms, 5: blockTable ?? norms },
      bytes: { 2: params },
      form: "threadgroups",
      grid: dispatch.grid,
      threads: dispatch.threadsPerThreadgroup,
    });
    return rows;
  };
  using rowsOfK = decode(0, k, entry.formatK);
  using rowsOfV = decode(1, v, entry.formatV);
  // A slot a position, or a slot of the ring: no pages.
  flashAttnPrefill(pass, { ...rest, k: rowsOfK, v: rowsOfV });
  pass.commitAndWait();
  const fault = judgeOptions(scene);
  scene.dispose();
  return fault;
}

const decoders = new Map<number, string>();
const cases = Object.entries({ line, words, windowed, ragged, pages, ring, wide });
testTable(
  "the kernel as it is",
  cases.map(([name, entry]) => ({ name, entry })),
  ({ entry }) => {
    const decoder = decoders.get(entry.row.headDim) ?? decoderOf(entry, []);
    decoders.set(entry.row.headDim, decoder);
    expect(failure(entry, decoder)).toBeUndefined();
  },
);

const mistake = (name: string, entry: OptionCase, find: RegExp, replace: string) => ({
  ...{ name, entry },
  patches: [{ find, replace }],
});

const mistakes = [
  mistake("signs left out", line, /sign_lanes<D>\(values, lane\);/, ""),
  mistake("codes not rotated back", line, /hadamard_lanes<D>\(values, lane\);/, ""),
  mistake("the factor of the rotation left out", line, /sqrt\(float\(D\) \* block\)/, "sqrt(float(D))"),
  mistake("the norm of the first row", line, /norms\[ulong\(row\) \* norm_count \+ n\]/, "norms[n]"),
  mistake(
    "the codes of the first head",
    line,
    /params\.n_kv_heads \+ kv_head\) \* params\.capacity/,
    "params.n_kv_heads) * params.capacity",
  ),
  mistake("rows of codes as many as scratch has", line, /kv_head\) \* params\.capacity/, "kv_head) * params.n_slots"),
  mistake("the last codes of a row not shifted back", words, /\(bit - 16 \* start\)/, "(bit % 16)"),
  mistake(
    "the oldest key of the window left out",
    windowed,
    /length - int\(params\.keys_seen\)/,
    "length - int(params.keys_seen) + 1",
  ),
  mistake("the length of the first sequence", ragged, /seq_lens\[batch\]/, "seq_lens[0]"),
  mistake("the newest key left out", line, /return int\(slot\) < length &&/, "return int(slot) + 1 < length &&"),
  mistake("the pages of the first sequence", pages, /block_table\[batch \* params\.max_pages \+/, "block_table["),
  mistake("the first slot of a page", pages, /slot - page_of_sequence \* params\.capacity/, "0"),
  mistake(
    "the window of positions on the slots of a ring",
    ring,
    /params\.keys_seen != 0 && !is_ring/,
    "params.keys_seen != 0",
  ),
  mistake("the first norm for both halves", wide, /\* norm_count \+ n\]/, "* norm_count]"),
  mistake("the unit of one norm for two", wide, /D <= 256 \? 1\.0f/, "D <= 512 ? 1.0f"),
];
testTable("the judgement catches", mistakes, ({ entry, patches }) => {
  expect(failure(entry, decoderOf(entry, patches))).toBeDefined();
});
