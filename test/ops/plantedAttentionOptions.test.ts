import { afterAll, expect } from "bun:test";
import { Pass } from "../../src/device/pass.ts";
import { Device, flashAttnPrefill, type Tensor } from "../../src/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, rowOf } from "../helpers/prefillOptions.ts";
import { type Mistake, oneMistake, plant } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in what attention has beside a mask: the judgement that other tests make of its results must
// catch each of them.

const device = Device.open();
afterAll(() => device.dispose());

const file = "flash_attn_prefill.metal";
const row = rowOf(64, "bf16");
/** Whose tiles of keys are copied ahead. */
const copying = rowOf(128, "bf16");

const linear: OptionCase = {
  ...{ row, heads: 4, kvHeads: 2, sequences: [0, 1].map(() => ({ rows: 37, keys: 60 })), storage: "linear" },
  ...{ isPacked: false, causal: true, hasLse: true, seed: 9 },
};
const ragged = [33, 1, 20].map((rows) => ({ rows, keys: rows }));

const tailed: OptionCase = { ...linear, sequences: [{ rows: 37, keys: 60 }] };

/** What every mistake runs on. */
const battery: readonly OptionCase[] = [
  { ...linear, window: 20 },
  { ...linear, window: 1, sink: 0.5 },
  { ...linear, softcap: 1.5, sink: 3 },
  { ...linear, softcap: 2, hasSlopes: true },
  { ...linear, hasSlopes: true, causal: false, isTokenMajor: true },
  { ...linear, sequences: [37, 12].map((keys) => ({ rows: 20, keys })), window: 9 },
  { ...linear, sequences: ragged, storage: "packed", isPacked: true },
  { ...linear, sequences: ragged.map(({ rows }) => ({ rows, keys: rows + 7 })), isPacked: true },
  { ...linear, storage: "ring", capacity: 45, window: 30 },
  { ...linear, storage: "ring", capacity: 45, hasLengths: true, causal: false },
  { ...linear, storage: "pages", pageTokens: 7 },
  { ...tailed, tail: { slots: 50, tokens: 12, block: 5 } },
  { ...tailed, window: 7, tail: { slots: 44, tokens: 6, block: 4, quantized: 30 } },
];

/** What mistakes with whole tiles run on, whose rows begin at multiples of 16 bytes. */
const copied: readonly OptionCase[] = [
  { ...linear, row: copying, storage: "pages", pageTokens: 16 },
  { ...linear, row: copying, storage: "ring", capacity: 48, window: 40 },
  // Its first tile in the tail is the last one before it.
  {
    ...{ ...linear, row: copying, sequences: [{ rows: 17, keys: 64 }] },
    tail: { slots: 64, tokens: 16, block: 16 },
  },
];

/** What the judgement says of a kernel, for each case that fails. */
function failures(name: string, cases = battery): string[] {
  return cases.flatMap((entry) => {
    const scene = new OptionScene(device, entry);
    const {
      q,
      k,
      v,
      out,
      lse,
      sinks = q,
      alibiSlopes = q,
      seqLens = q,
      seqOffsets = q,
      blockTable = q,
      tail,
    } = scene.args;
    using encoded = device.pass();
    flashAttnPrefill(encoded, scene.args);
    const { native, handle } = Pass.use(encoded);
    const bytes = (index: number) => argumentBytes(native, handle, 0, index);
    const [dispatch] = encoded.describe();
    if (dispatch === undefined) throw new Error("nothing was encoded");
    using pipeline = device.pipeline(name, {
      constants: [200, 201, 300, 301, 303, 304, 305, 306, 307].map((index) => ({
        ...{ index, dtype: "bool" as const },
        value: index === 304 || (index === 305 && cases === copied) || (index === 306 && tail !== undefined),
      })),
    });
    using pass = device.pass();
    const buffers: Record<number, Tensor> = { 0: q, 1: k as Tensor, 2: v as Tensor, 3: out, 9: sinks, 10: alibiSlopes };
    pass.dispatch(pipeline, {
      buffers: {
        ...{ ...buffers, 11: lse ?? out, 12: seqLens, 13: seqOffsets, 14: blockTable },
        ...(tail && { 16: tail.k, 17: tail.v }),
      },
      bytes: { 4: bytes(4), 8: bytes(8), ...(tail && { 15: bytes(15) }) },
      form: "threadgroups",
      grid: dispatch.grid,
      threads: dispatch.threadsPerThreadgroup,
    });
    pass.commitAndWait();
    const failure = judgeOptions(scene);
    scene.dispose();
    return failure === undefined ? [] : [failure];
  });
}

const mistakes: readonly Mistake[] = [
  oneMistake("a window one key long", /from - options\.window \+ 1\)/, "from - options.window)"),
  oneMistake("a window one key short", /from - options\.window \+ 1\)/, "from - options.window + 2)"),
  oneMistake("the window of the tile's first row for all", /prompt\.seen\(options, position, position\)/, "seen"),
  oneMistake(
    "tiles from the window of the last row on",
    /first_tile = seen\.first \/ BK;/,
    "first_tile = (seen.first + BK - 1) / BK;",
  ),
  oneMistake("a soft cap without its factor", /softcap \* precise::tanh/, "precise::tanh"),
  oneMistake("a soft cap of scores in powers of two", /caps \? params\.scale :/, "false ? params.scale :"),
  oneMistake("a soft cap accepted and not read", /score_options\.softcap != 0\.0f/, "false"),
  oneMistake("slopes not in powers of two", /alibi_slopes\[head\] \* M_LOG2E_F/, "alibi_slopes[head]"),
  oneMistake("slopes of another head", /alibi_slopes\[head\]/, "alibi_slopes[0]"),
  oneMistake("slopes from the first key on", /first_key \+ lane\.column - position\);/, "first_key + lane.column);"),
  oneMistake("the sink of another head", /sinks\[head\]/, "sinks[0]"),
  oneMistake("the sink beside the maximum without it", /exp2\(sink - largest\)/, "exp2(sink - maximum)"),
  oneMistake("what is not the sink not scaled", /end\.factor \* normalizer_of\(end\.sum\)/, "normalizer_of(end.sum)"),
  oneMistake(
    "the sink in each key's sum",
    /\+ precise::exp2\(sink - largest\)/,
    "+ 2.0f * precise::exp2(sink - largest)",
  ),
  oneMistake("logarithms to the base 2", /M_LN2_F \* \(maximum/, "1.0f * (maximum"),
  oneMistake("logarithms without the maximum", /\(maximum \+ precise::log2\(sum\)\)/, "(precise::log2(sum))"),
  oneMistake("logarithms of another head", /head \* options\.L_strides\[1\]/, "kv_head * options.L_strides[1]"),
  oneMistake("lengths of another sequence", /seq_lens\[prompt\.batch\]/, "seq_lens[0]"),
  oneMistake("rows that begin with the first key", /prompt\.keys - prompt\.rows : params/, "0 : params"),
  oneMistake("tiles of packed rows one early", /start \/ BQ \+ sequence <= slot/, "start / BQ + sequence < slot"),
  oneMistake(
    "packed rows of the first sequence",
    /packed_row >= 0 \? packed_row \* strides\[2\]/,
    "packed_row >= 0 ? 0",
  ),
  oneMistake(
    "packed keys of the first sequence",
    /MA_ATTN_PACKED_KEYS\) != 0 \? packed_row/,
    "MA_ATTN_PACKED_KEYS) != 0 ? 0",
  ),
  oneMistake("a ring that does not wrap", /key % options\.capacity : key/, "min(key, options.capacity - 1) : key"),
  oneMistake(
    "a ring with a slot too few",
    /max\(0, prompt\.keys - options\.capacity\)/,
    "max(0, prompt.keys - options.capacity + 1)",
  ),
  oneMistake(
    "pages in the order of the pool",
    /clamp\(given, 0, options\.n_pages - 1\)/,
    "clamp(page_of_sequence, 0, options.n_pages - 1)",
  ),
  oneMistake("the table of the first sequence", /block_table\[prompt\.batch \*/, "block_table[0 *"),
  oneMistake("a key too many in the tail", /position \+ 1 - tail\.tokens/, "position - tail.tokens"),
  oneMistake("a tail of so many tokens at most", /position \+ 1 - tail\.tokens/, "position + tail.block - tail.tokens"),
  oneMistake("tokens that leave the tail one by one", /\/ tail\.block \* tail\.block/, ""),
  oneMistake("quantized tokens that come back", /max\(tail\.quantized, left\)/, "left"),
  oneMistake("the tail of the last row for all", /first_of_tail\(tail, from\)/, "first_of_tail(tail, to)"),
  oneMistake("codes up to those of the first row", /first_of_tail\(tail, to\)/, "first_of_tail(tail, from)"),
  oneMistake(
    "a tail seen from before the window",
    /max\(first, first_of_tail\(tail, from\)\)/,
    "first_of_tail(tail, from)",
  ),
  oneMistake("a tail that does not wrap", /key % prompt\.tail\.slots/, "min(key, prompt.tail.slots - 1)"),
  oneMistake("the tail of the first head", /tail_keys \+ kv_head \* D/, "tail_keys"),
  oneMistake("keys of the tail for values", /V = tail_values/, "V = tail_keys"),
  oneMistake("no tail at all", /\|\| \(has_tail && !prompt\.is_in_tail\)/, ""),
];

testTable("the kernel as it is", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, row.kernel, []))).toEqual([]);
});

testTable("the judgement catches", mistakes, ({ patches }) => {
  expect(failures(plant(device, file, row.kernel, patches))).not.toEqual([]);
});

const mistakesInCopies: readonly Mistake[] = [
  oneMistake("the tile's own keys as the next", /prompt, first_key \+ BK\);/, "prompt, first_key);"),
  // Of the first head, behind whose rows those of the second lie.
  oneMistake("the next keys behind these", /if \(has_options && is_next_whole\)/, "if (is_next_whole && kv_head != 0)"),
];

testTable("whole tiles as they are", [{ name: "passes" }], () => {
  expect(failures(plant(device, file, copying.kernel, []), copied)).toEqual([]);
});

testTable("the judgement catches in whole tiles", mistakesInCopies, ({ patches }) => {
  expect(failures(plant(device, file, copying.kernel, patches), copied)).not.toEqual([]);
});
