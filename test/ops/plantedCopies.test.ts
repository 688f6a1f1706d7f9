import { afterAll, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { type CopyTokensParams, referenceKvCacheCopySeq } from "../../src/reference/index.ts";
import { bitDifferences, bitsOf, fillEdgesAndNoise, fillPattern } from "../helpers/elements.ts";
import { patchShader, plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the shader: a comparison that lets one of them pass is
// too loose to mean anything for the shader as it is.

const device = Device.open();
afterAll(() => device.dispose());

interface Mistake extends ShaderPatch {
  readonly name: string;
}

const file = "kv_cache_copy.metal";
const kernel = "kv_cache_copy_seq_f32_to_bf16";
const params: CopyTokensParams = {
  nHeads: 3,
  headDim: 36,
  capacity: 6,
  seqPosStart: 10,
  nTokens: 4,
  srcTokOffset: 3,
};
const srcTokens = 9;

/** The first elements that differ from the oracle's; each thread moves a vector of 4 or one, with 64-bit offsets or 32-bit. */
function differences(kernelName: string, areVectors = true, wideIndex = false): readonly string[] {
  const { nHeads, headDim: size, capacity, seqPosStart, nTokens, srcTokOffset } = params;
  using src = device.tensor("f32", [srcTokens, nHeads, size]);
  // One slot more than the kernel is told of, for a mistake to write to.
  using cache = device.tensor("bf16", [nHeads * capacity + 1, size]);
  fillEdgesAndNoise(bitsOf(src), "f32", 1);
  fillPattern(bitsOf(cache), 1);
  const expected = bitsOf(cache).slice();
  referenceKvCacheCopySeq({ src: bitsOf(src), srcDtype: "f32", cache: expected, cacheDtype: "bf16" }, params);

  const values = [areVectors, wideIndex];
  const constants = values.map((value, index) => ({ index, dtype: "bool", value }) as const);
  using pipeline = device.pipeline(kernelName, { constants });
  using pass = device.pass();
  pass.dispatch(pipeline, {
    buffers: [src, cache],
    bytes: { 2: new Uint32Array([nHeads, size, capacity, seqPosStart, nTokens, srcTokOffset, srcTokens]) },
    grid: [areVectors ? size / 4 : size, nHeads, nTokens],
    threads: [9, nHeads, nTokens],
  });
  pass.commitAndWait();
  return bitDifferences("bf16", bitsOf(cache), expected, true);
}

const right = "as_type<ushort>(bfloat(value))";
const bits = "as_type<uint>(value)";
/** Rounds in another way. */
const rounding = (name: string, replace: string): Mistake => ({
  name,
  find: /as_type<ushort>\(bfloat\(value\)\)/,
  replace,
});
/** NaN as it should be, and of numbers the upper half of `changed`. */
const numbers = (changed: string): string => `isnan(value) ? ${right} : ushort((${changed}) >> 16)`;
/** The same the other way around. */
const notNumbers = (changed: string): string => `isnan(value) ? ushort((${changed}) >> 16) : ${right}`;

const mistakes: readonly Mistake[] = [
  { name: "the ring wraps one slot early", find: /= capacity - start;/, replace: "= capacity - start - 1;" },
  { name: "the ring wraps one slot late", find: /token < before_wrap \?/, replace: "token <= before_wrap ?" },
  {
    name: "the ring starts one slot on",
    find: /first % capacity/,
    replace: "(first + 1) % capacity",
  },
  rounding("ties rounded up", numbers(`${bits} + 0x8000u`)),
  rounding("ties rounded down", numbers(`${bits} + 0x7fffu`)),
  rounding("no rounding", numbers(bits)),
  rounding("NaN rounded like a number", notNumbers(`${bits} + ((${bits} & 0x10000u) != 0 ? 0x8000u : 0x7fffu)`)),
  rounding("NaN cut to an infinity", notNumbers(bits)),
  { name: "the third of four elements twice", find: /apply\(bits\.w\)/, replace: "apply(bits.z)" },
];

testTable("the shader as it is", [{ name: "passes" }], () => {
  expect(differences(plant(device, file, kernel, []))).toEqual([]);
});

test.each([
  [false, false],
  [false, true],
  [true, true],
])("vectors %p, 64-bit offsets %p: the same result", (areVectors, wideIndex) => {
  expect(differences(kernel, areVectors, wideIndex)).toEqual([]);
});

testTable("a comparison fails where", mistakes, (mistake) => {
  expect(differences(plant(device, file, kernel, [mistake]))).not.toEqual([]);
});

test("a patch that fits nowhere, or twice, is an error", () => {
  expect(() => patchShader("a b", { find: /c/, replace: "" })).toThrow("0 places");
  expect(() => patchShader("a a", { find: /a/, replace: "" })).toThrow("2 places");
});
