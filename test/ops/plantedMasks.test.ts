import { afterAll, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { referenceSlidingWindowMask, referenceTileClasses } from "../../src/reference/index.ts";
import { oneMistake, plant } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the shader that builds masks: the comparison sees each of them.

const device = Device.open();
afterAll(() => device.dispose());

const file = "flash_attn_mask.metal";
const [qL, qOffsetInK, window] = [40, 271, 13];

/** How many elements differ from the oracle's, with a row of memory behind the mask. */
function differences(kernelName: string, dtype: "bf16" | "f16" | "bool", areRuns: boolean): number {
  const kL = areRuns ? 528 : 517;
  using mask = device.tensor(dtype, [qL + 1, kL]);
  mask.set(new Float32Array(mask.length).fill(1));
  using pipeline = device.pipeline(kernelName, { constants: [{ index: 600, dtype: "bool", value: areRuns }] });
  using pass = device.pass();
  const columns = areRuns ? kL / 16 : 32 * Math.ceil(kL / 256);
  pass.dispatch(pipeline, {
    buffers: [mask],
    bytes: { 1: new Int32Array([qL, kL, qOffsetInK, window]) },
    grid: [columns, qL, 1],
    threads: [columns, 1, 1],
  });
  pass.commitAndWait();
  const [no, yes] = dtype === "bool" ? [0, 1] : [Number.NEGATIVE_INFINITY, 0];
  const attends = referenceSlidingWindowMask({ seqLenQ: qL, seqLenK: kL, qOffsetInK, window });
  const expected = [...attends.map((attend) => (attend ? yes : no)), ...new Array<number>(kL).fill(1)];
  return mask.toFloat32Array().filter((value, i) => value !== expected[i]).length;
}

const runs = [
  oneMistake("the newest key is left out", /last < 0 \?/, "last < 1 ?"),
  oneMistake("a word has one key less", /7 - min\(last, 7\)/, "7 - min(last, 6)"),
  oneMistake("keys in the other order", /0x0101010101010101ul >>/, "0x0101010101010101ul <<"),
  oneMistake("the oldest key is left out", /before = oldest - 1/, "before = oldest"),
  oneMistake("the second word as the first", /bools_through\(last - 8\)/, "bools_through(last)"),
  oneMistake("the second word begins as the first", /bools_through\(before - 8\)/, "bools_through(before)"),
  oneMistake("runs of eight", /position\.x \* bools_per_thread/, "position.x * 8"),
];
const elements = [
  oneMistake("the newest key is left out", /int\(key\) <= newest/, "int(key) < newest"),
  oneMistake("a key before the oldest", /int\(key\) >= oldest/, "int(key) >= oldest - 1"),
  oneMistake("the window is one longer", /params\.window \+ 1/, "params.window"),
  oneMistake("a key behind the row", /if \(key < uint\(params\.kL\)\) \{\n\s*row/, "if (key <= uint(params.kL)) { row"),
  oneMistake("keys of a thread side by side", /i \* lanes/, "i"),
];

test.each([
  ["bf16", false],
  ["f16", false],
  ["bool", false],
  ["bool", true],
] as const)("the shader as it is: %s, runs %p", (dtype, areRuns) => {
  const kernel = `build_sliding_window_mask_${dtype}`;
  expect(differences(plant(device, file, kernel, []), dtype, areRuns)).toBe(0);
});

testTable("runs of bools: a comparison fails where", runs, ({ patches }) => {
  const kernel = plant(device, file, "build_sliding_window_mask_bool", patches);
  expect(differences(kernel, "bool", true)).toBeGreaterThan(0);
});

testTable("a comparison fails where", elements, ({ patches }) => {
  const kernel = plant(device, file, "build_sliding_window_mask_bf16", patches);
  expect(differences(kernel, "bf16", false)).toBeGreaterThan(0);
});

/** How many classes of a mask [40, 70] of bools are not the oracle's, in tiles of 32 x 16. */
function classDifferences(kernelName: string): number {
  const [rows, keys, NQ, NK] = [40, 70, 2, 5];
  // Blocked, mixed and unmasked tiles, and mixed ones that differ from a neighbour in one key.
  const values = Float32Array.from({ length: rows * keys }, (_, i) => {
    const [row, key] = [Math.floor(i / keys), i % keys];
    return row >= 32 ? Number(key !== 3) : key < 16 ? 0 : Number(key < 48 || key === 48 || (key > 64 && row > 30));
  });
  // A row more, which is all blocked.
  using mask = device.tensor("bool", [rows + 1, keys]);
  mask.set(new Float32Array([...values, ...new Array<number>(keys).fill(0)]));
  using classes = device.tensor("u8", [NQ * NK + 1]);
  classes.set(new Float32Array(NQ * NK + 1).fill(7));
  using pipeline = device.pipeline(kernelName, { constants: [{ index: 600, dtype: "bool", value: false }] });
  using pass = device.pass();
  const params = new ArrayBuffer(48);
  new Int32Array(params).set([1, 1, rows, keys, NQ, NK]);
  new BigInt64Array(params, 24).set([0n, 0n, BigInt(keys)]);
  pass.dispatch(pipeline, {
    buffers: [mask, classes],
    bytes: { 2: new Uint8Array(params) },
    form: "threadgroups",
    grid: [2, NQ, 1],
    threads: [32, 2, 1],
  });
  pass.commitAndWait();
  const expected = referenceTileClasses(
    { kind: "bool", values, strides: { batch: 0, head: 0, token: keys } },
    { batches: 1, heads: 1, seqLenQ: rows, seqLenK: keys, tileRows: 32, tileKeys: 16 },
  );
  return classes.view().filter((value, i) => value !== (expected[i] ?? 7)).length;
}

const classifier = "classify_mask_tiles_bool_q32_k16";
const mistakesOfClasses = [
  oneMistake("votes of a neighbour's lanes", /lane \/ BK \* BK\)/, "0)"),
  oneMistake("blocked and unmasked exchanged", /blocked == of_tile \?/, "unmasked == of_tile ?"),
  oneMistake("the first row of tiles for all", /int\(group\.y\) \* BQ/, "0"),
  oneMistake("the last rows left out", /row < rows; row\+\+/, "row < rows - 1; row++"),
  oneMistake("keys past the last one count", / if \(has_key\) \{/, " {"),
  oneMistake("the classes of the first tile for both", /\(first_key \+ lane\) \/ BK/, "first_key / BK"),
];

test("the classifier as it is", () => {
  expect(classDifferences(plant(device, file, classifier, []))).toBe(0);
});

testTable("the classes differ where", mistakesOfClasses, ({ patches }) => {
  expect(classDifferences(plant(device, file, classifier, patches))).toBeGreaterThan(0);
});
