import { afterAll, describe, expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { Device, type Tensor } from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import {
  boundariesOf,
  bytesPerRow,
  CODEBOOKS,
  type CodeFormat,
  normsPerPos,
  quantizeVector,
  referenceDequantizeKv,
  roundTo,
  unpackCodes,
} from "../../src/reference/index.ts";
import {
  codeFormats,
  type HadamardDispatch,
  HadamardKernels,
  type HadamardStream,
  headSizes,
} from "../helpers/hadamard.ts";
import { patchShader, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

const device = Device.open();
afterAll(() => device.dispose());
const kernels = new HadamardKernels(device);

/** What untouched bytes and norms hold. */
const pattern = { packed: 0xa5, norm: -7.25 };

function cacheOf(dispatch: HadamardDispatch): { packed: Tensor<"u8">; norms: Tensor<"f32"> } {
  const { headDim, nKvHeads, capacity, format } = dispatch;
  const packed = device.tensor("u8", [nKvHeads, capacity, bytesPerRow(headDim, format)]);
  const norms = device.tensor("f32", [nKvHeads, capacity, normsPerPos(headDim)]);
  packed.view().fill(pattern.packed);
  norms.view().fill(pattern.norm);
  return { packed, norms };
}

/** A source of `values`, and a cache with room for `spareHeads` that no dispatch may touch. */
function streamOf(dispatch: HadamardDispatch, values: Float32Array, spareHeads = 0): HadamardStream {
  const { nKvHeads, headDim } = dispatch;
  const rows = values.length / (nKvHeads * headDim);
  const src = device.tensor("f32", [rows, nKvHeads, headDim]).set(values);
  return { src, ...cacheOf({ ...dispatch, nKvHeads: nKvHeads + spareHeads }) };
}

/** Normal values, some of them with an outlier channel, each head at a scale of its own. */
function sourceValues(headDim: number, rows: number, seed: number): Float32Array {
  const values = normalArray(rows * headDim, 1, seed);
  for (let row = 0; row < rows; row++) {
    const scale = [1, 300, 1e-4][row % 3] as number;
    for (let i = 0; i < headDim; i++) {
      const outlier = row % 4 === 3 && i === 5 ? 50 : 1;
      values[row * headDim + i] = at(values, row * headDim + i) * scale * outlier;
    }
  }
  return values;
}

interface Comparison {
  /** Codes compared, codes that differ, and those that differ by more than the neighbour of a near boundary. */
  readonly codes: number;
  readonly neighbours: number;
  readonly wrong: number;
  readonly wrongNorms: number;
  readonly touched: number;
}

/** Compares a cache with the oracle's encoding of tokens srcTokOffset and on. */
function compare(
  dispatch: HadamardDispatch,
  stream: HadamardStream,
  nTokens: number,
  srcTokOffset: number,
): Comparison {
  const { format, headDim, nKvHeads, capacity, posStart, isSliding } = dispatch;
  const options = { ...format, scaleFactorD512: dispatch.scaleFactorD512 ?? 1 };
  const [rowBytes, perPos] = [bytesPerRow(headDim, format), normsPerPos(headDim)];
  const boundaries = boundariesOf(format.bits);
  const [src, packed, norms] = [stream.src.view(), stream.packed.view(), stream.norms.view()];
  const counts = { codes: 0, neighbours: 0, wrong: 0, wrongNorms: 0, touched: 0 };
  const written = new Set<number>();
  for (let token = 0; token < nTokens; token++) {
    for (let head = 0; head < nKvHeads; head++) {
      const position = posStart + token;
      const row = head * capacity + (isSliding ? position % capacity : position);
      written.add(row);
      const first = ((srcTokOffset + token) * nKvHeads + head) * headDim;
      const expected = quantizeVector(src.subarray(first, first + headDim), options);
      const bytes = packed.subarray(row * rowBytes, (row + 1) * rowBytes);
      const codes = unpackCodes(bytes, headDim, format);
      if (format.packing === "byte" && bytes.some((byte) => byte >= 2 ** format.bits)) counts.wrong += 1;
      for (const [i, code] of codes.entries()) {
        const wanted = at(expected.codes, i);
        counts.codes += 1;
        if (code === wanted) continue;
        const boundary = boundaries[Math.min(code, wanted)] as number;
        const isNear = Math.abs(code - wanted) === 1 && Math.abs(at(expected.scaled, i) - boundary) < 1e-5;
        if (isNear) counts.neighbours += 1;
        else counts.wrong += 1;
      }
      for (const [n, norm] of expected.norms.entries()) {
        const stored = at(norms, row * perPos + n);
        const isRight = Number.isNaN(norm) ? Number.isNaN(stored) : Math.abs(stored - norm) <= 1e-6 * norm;
        if (!isRight) counts.wrongNorms += 1;
      }
    }
  }
  for (let row = 0; row < packed.length / rowBytes; row++) {
    if (written.has(row)) continue;
    const isTouched =
      packed.subarray(row * rowBytes, (row + 1) * rowBytes).some((byte) => byte !== pattern.packed) ||
      norms.subarray(row * perPos, (row + 1) * perPos).some((norm) => norm !== pattern.norm);
    if (isTouched) counts.touched += 1;
  }
  return counts;
}

function expectRight(comparison: Comparison): void {
  const { codes, neighbours, ...faults } = comparison;
  expect(faults).toEqual({ wrong: 0, wrongNorms: 0, touched: 0 });
  expect(codes).toBeGreaterThan(0);
  expect(neighbours).toBeLessThanOrEqual(Math.max(2, codes * 1e-5));
}

interface Case {
  readonly name: string;
  readonly headDim: number;
  readonly format: CodeFormat;
  readonly anySize?: boolean;
  readonly scaleFactorD512?: number;
}

const formatName = ({ bits, packing }: CodeFormat): string => `${bits} bits, ${packing}`;
const anySizes = [4, 16, 64, 512, 1024, 4096];
const cases: readonly Case[] = codeFormats.flatMap((format) => [
  ...headSizes.map((headDim): Case => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
  ...anySizes
    .filter((headDim) => (headDim * format.bits) % 8 === 0)
    .map((headDim): Case => {
      return { name: `any size, D=${headDim}, ${formatName(format)}`, headDim, format, anySize: true };
    }),
]);
const factors: readonly Case[] = [false, true].flatMap((anySize) =>
  [0.5, 16].map((scaleFactorD512): Case => {
    const format = { bits: 4, packing: "nibble" } as const;
    return {
      name: `factor ${scaleFactorD512}, ${anySize ? "any size" : "sized"}`,
      headDim: 512,
      format,
      scaleFactorD512,
      anySize,
    };
  }),
);

testTable("K and V in one dispatch, one by one, and back", [...cases, ...factors], (entry) => {
  const { headDim, format, anySize = false, scaleFactorD512 = 1 } = entry;
  const nTokens = 5;
  const srcTokOffset = 2;
  const dispatch: HadamardDispatch = {
    format,
    headDim,
    anySize,
    scaleFactorD512,
    nKvHeads: 3,
    capacity: 7,
    posStart: 7 * 11 + 4,
    isSliding: true,
  };
  const streams = [1, 2].map((seed) => streamOf(dispatch, sourceValues(headDim, 8 * 3, seed)));
  kernels.quantizeSeq(dispatch, streams, nTokens, srcTokOffset);
  for (const stream of streams) expectRight(compare(dispatch, stream, nTokens, srcTokOffset));

  const [bulk] = streams as [HadamardStream, HadamardStream];
  const singles = streams.map(({ src }) => ({ src, ...cacheOf(dispatch) }));
  for (let token = 0; token < nTokens; token++) {
    const one = { ...dispatch, posStart: dispatch.posStart + token };
    kernels.quantize(one, singles, srcTokOffset + token);
  }
  for (const [s, single] of singles.entries()) {
    expect(single.packed.view()).toEqual((streams[s] as HadamardStream).packed.view());
    expect(single.norms.view()).toEqual((streams[s] as HadamardStream).norms.view());
  }

  const outs = streams.map(() => device.tensor("f32", [3, nTokens, headDim]));
  kernels.dequantize(dispatch, streams, outs, nTokens);
  for (const [s, { packed, norms }] of streams.entries()) {
    const expected = referenceDequantizeKv(
      { packed: packed.view(), norms: norms.view() },
      { ...dispatch, nTokens },
      { ...format, scaleFactorD512 },
    );
    const actual = (outs[s] as Tensor<"f32">).view();
    let worst = 0;
    for (let first = 0; first < expected.length; first += headDim) {
      const row = expected.subarray(first, first + headDim);
      const largest = Math.max(...row.map(Math.abs));
      for (const [i, value] of row.entries())
        worst = Math.max(worst, Math.abs(at(actual, first + i) - value) / largest);
    }
    expect(worst).toBeLessThan(2e-6);
  }
  for (const dtype of ["f16", "bf16"] as const) {
    using out = device.tensor(dtype, [3, nTokens, headDim]);
    kernels.dequantize(dispatch, [bulk], [out], nTokens);
    const values = (outs[0] as Tensor<"f32">).view();
    expect(out.toFloat32Array()).toEqual(Float32Array.from(values, (value) => roundTo(dtype, value)));
  }
});

describe("a linear cache", () => {
  const format = { bits: 4, packing: "nibble" } as const;
  test.each([64, 112, 256, 512])("D=%p: writes to its very end and reads any range", (headDim) => {
    const dispatch = { format, headDim, nKvHeads: 2, capacity: 6, posStart: 2, isSliding: false };
    const stream = streamOf(dispatch, sourceValues(headDim, 4 * 2, 3));
    kernels.quantizeSeq(dispatch, [stream], 4, 0);
    expectRight(compare(dispatch, stream, 4, 0));
    const whole = device.tensor("f32", [2, 4, headDim]);
    kernels.dequantize(dispatch, [stream], [whole], 4);
    const part = device.tensor("f32", [2, 2, headDim]);
    kernels.dequantize({ ...dispatch, posStart: 3 }, [stream], [part], 2);
    for (const head of [0, 1]) {
      const from = (head * 4 + 1) * headDim;
      expect(part.view().slice(head * 2 * headDim, (head + 1) * 2 * headDim)).toEqual(
        whole.view().slice(from, from + 2 * headDim),
      );
    }
  });
});

describe("vectors that have no codes of their own", () => {
  const sizes = [
    [64, false],
    [80, false],
    [128, false],
    [512, false],
    [64, true],
    [512, true],
  ] as const;
  test.each(sizes)("D=%p, any size %p: zero, tiny, NaN, infinite and too large", (headDim, anySize) => {
    for (const format of codeFormats) {
      const dispatch = { format, headDim, anySize, nKvHeads: 1, capacity: 6, posStart: 0, isSliding: false };
      const values = normalArray(6 * headDim, 1, 5);
      values.fill(0, 0, headDim);
      for (let i = headDim; i < 2 * headDim; i++) values[i] = 1e-14;
      values[2 * headDim + 3] = Number.NaN;
      values[3 * headDim + headDim - 1] = Number.NEGATIVE_INFINITY;
      values.fill(3e38, 4 * headDim, 5 * headDim);
      const stream = streamOf(dispatch, values);
      kernels.quantizeSeq(dispatch, [stream], 6, 0);
      expectRight(compare(dispatch, stream, 6, 0));
      const perPos = normsPerPos(headDim);
      const norms = [...stream.norms.view()];
      expect(norms.slice(0, 2 * perPos).every((norm) => Object.is(norm, 0))).toBe(true);
      expect(norms.slice(2 * perPos, 5 * perPos).every(Number.isNaN)).toBe(true);
      const rowBytes = bytesPerRow(headDim, format);
      expect(
        stream.packed
          .view()
          .subarray(2 * rowBytes, 5 * rowBytes)
          .every((byte) => byte === 0),
      ).toBe(true);
      using out = device.tensor("f32", [1, 6, headDim]);
      kernels.dequantize(dispatch, [stream], [out], 6);
      const read = out.view();
      expect(read.subarray(0, 2 * headDim).every((value) => Object.is(value, 0))).toBe(true);
      expect(read.subarray(2 * headDim, 5 * headDim).every(Number.isNaN)).toBe(true);
      expect(read.subarray(5 * headDim).some(Number.isNaN)).toBe(false);
    }
  });
});

test.each([
  [64, false],
  [96, false],
  [256, false],
  [512, false],
  [128, true],
] as const)("D=%p, any size %p: the probe gets every scaled coordinate", (headDim, anySize) => {
  const format = { bits: 4, packing: "nibble" } as const;
  const dispatch = { format, headDim, anySize, nKvHeads: 3, capacity: 2, posStart: 1, isSliding: false };
  const stream = streamOf(dispatch, sourceValues(headDim, 3, 9));
  using scratch = device.tensor("f32", [3, headDim]);
  kernels.quantize(dispatch, [stream], 0, scratch);
  const src = stream.src.view();
  const expected = [0, 1, 2].flatMap((head) => [
    ...quantizeVector(src.subarray(head * headDim, (head + 1) * headDim), format).scaled,
  ]);
  const worst = Math.max(...expected.map((value, i) => Math.abs(at(scratch.view(), i) - value)));
  expect(worst).toBeLessThan(1e-5);
  expectRight(compare(dispatch, stream, 1, 0));
});

/** Mean squared error of a round trip, relative to the mean square of `values`. */
function distortion(headDim: number, format: CodeFormat, values: Float32Array): number {
  const rows = values.length / headDim;
  const dispatch = { format, headDim, nKvHeads: 1, capacity: rows, posStart: 0, isSliding: false };
  const stream = streamOf(dispatch, values);
  using out = device.tensor("f32", [1, rows, headDim]);
  kernels.quantizeSeq(dispatch, [stream], rows, 0);
  kernels.dequantize(dispatch, [stream], [out], rows);
  const read = out.view();
  let [error, power] = [0, 0];
  for (const [i, value] of values.entries()) {
    error += (at(read, i) - value) ** 2;
    power += value ** 2;
  }
  return error / power;
}

/**
 * The distortion to expect: a coordinate of a vector of length sqrt(D) and
 * uniform direction has density (1 - z^2 / D)^((D - 3) / 2), a little narrower
 * than the normal density, and so is its error.
 */
function expectedDistortion(dimension: number, { bits }: CodeFormat): number {
  const radius = Math.sqrt(dimension);
  const codeBoundaries = [-radius, ...boundariesOf(bits), radius];
  const { centroids } = CODEBOOKS[bits];
  const levels = [...centroids.map((c) => -c).reverse(), ...centroids];
  let [mass, error] = [0, 0];
  for (const [cell, level] of levels.entries()) {
    const [lower, upper] = [at(codeBoundaries, cell), at(codeBoundaries, cell + 1)];
    const steps = 400;
    for (let s = 0; s < steps; s++) {
      const z = lower + ((s + 0.5) * (upper - lower)) / steps;
      const weight = (1 - (z * z) / dimension) ** ((dimension - 3) / 2) * ((upper - lower) / steps);
      mass += weight;
      error += weight * (z - level) ** 2;
    }
  }
  return error / mass;
}

testTable(
  "distortion of 10,000 normal vectors",
  [64, 128, 256].flatMap((headDim) =>
    codeFormats
      .filter(({ packing, bits }) => packing !== "dense" || bits < 4)
      .map((format) => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
  ),
  ({ headDim, format }) => {
    const values = normalArray(10_000 * headDim, 1, headDim + format.bits);
    const measured = distortion(headDim, format, values);
    const expected = expectedDistortion(headDim, format);
    expect(Math.abs(measured / expected - 1)).toBeLessThan(0.01);
    expect(measured).toBeLessThan(1.01 * CODEBOOKS[format.bits].distortion);
  },
);

testTable(
  "one channel 50 times larger costs at most 3%",
  codeFormats.filter(({ bits }) => bits >= 4).map((format) => ({ name: formatName(format), format })),
  ({ format }) => {
    for (const headDim of [128, 256]) {
      const values = normalArray(2000 * headDim, 1, 77);
      for (let i = 9; i < values.length; i += headDim) values[i] = at(values, i) * 50;
      expect(distortion(headDim, format, values)).toBeLessThan(1.03 * CODEBOOKS[format.bits].distortion);
    }
  },
);

// Mistakes planted in the shaders: the comparison must see each of them.

/** The kernels of many tokens, and those of one token that are called for each. */
type Form = "bulk" | "one";

interface Mistake extends ShaderPatch {
  readonly name: string;
  /** Forms whose shader has the mistake; both where a header has it. */
  readonly forms?: readonly Form[];
  readonly headDim?: number;
  readonly values?: (headDim: number) => Float32Array;
}

/** Vectors with a coordinate on a boundary: two values that meet in 0. */
function onBoundary(headDim: number): Float32Array {
  const values = new Float32Array(8 * 3 * headDim);
  for (let first = 0; first < values.length; first += headDim) values[first] = 1;
  for (let first = 0; first < values.length; first += headDim) values[first + 3] = 1;
  return values;
}

const mistakes: readonly Mistake[] = [
  {
    name: "the sign table is shifted by a bit",
    find: /uint4\(31, 30, 29, 28\)/,
    replace: "uint4(30, 29, 28, 27)",
  },
  {
    name: "the transform is not normalised",
    find: /scale\.factor \* sqrt\(float\(D \/ Head<D>::block\)\)/,
    replace: "scale.factor * sqrt(float(D))",
  },
  {
    name: "the nibbles are swapped",
    find: /codes\[2 \* i\] \| uchar\(codes\[2 \* i \+ 1\] << 4\)/,
    replace: "codes[2 * i + 1] | uchar(codes[2 * i] << 4)",
  },
  {
    name: "the norms of the blocks are swapped",
    headDim: 512,
    find: /norms\[n\] = scale\.norm;/,
    replace: "norms[H::norms - 1 - n] = scale.norm;",
  },
  {
    name: "a boundary belongs to the upper code",
    values: onBoundary,
    find: /return z > 0\.0f \?/,
    replace: "return z >= 0.0f ?",
  },
  {
    name: "the ring wraps one slot late",
    forms: ["bulk"],
    find: /token < before_wrap \?/,
    replace: "token <= before_wrap ?",
  },
  {
    name: "the ring wraps one slot early",
    forms: ["bulk"],
    find: /capacity - start;/,
    replace: "capacity - start - 1;",
  },
  { name: "the ring is one slot short", forms: ["one"], find: /first % capacity;/, replace: "first % (capacity - 1);" },
  {
    name: "threads without a row write one",
    forms: ["bulk"],
    find: /if \(token >= params\.n_tokens\)/,
    replace: "if (false)",
  },
  {
    name: "the last SIMD group, which has no row, writes one",
    forms: ["one"],
    find: /if \(head >= params\.num_kv_heads\)(?= \{\s*return;\s*\}[^}]*rms_probe_enabled)/,
    replace: "if (false)",
  },
  ...[80, 112, 192].map(
    (headDim): Mistake => ({
      name: `D=${headDim}: lanes without a quad leave before the shuffles`,
      forms: ["one"],
      headDim,
      find: /(?=float square_sums\[H::norms\];)/,
      replace: "if (lane >= Q::count % simd_width) return; ",
    }),
  ),
  {
    name: "a butterfly between lanes is missing",
    forms: ["bulk"],
    find: /\(lane & 1\) != 0 \? -1\.0f : 1\.0f/,
    replace: "1.0f",
  },
  {
    name: "lanes meet those of another distance",
    forms: ["one"],
    find: /fma\(sign, quads\[i\], simd_shuffle_xor\(quads\[i\], ushort\(step\)\)\)/,
    replace: "fma(sign, quads[i], simd_shuffle_xor(quads[i], ushort(step == 4 ? 8 : step)))",
  },
];

function differences(mistake: ShaderPatch | undefined, form: Form, headDim: number, values: Float32Array): Comparison {
  const edited = new HadamardKernels(device, (text) => (mistake ? patchShader(text, mistake) : text));
  const format = { bits: 4, packing: "nibble" } as const;
  const dispatch = { format, headDim, nKvHeads: 3, capacity: 7, posStart: 4, isSliding: true };
  const stream = streamOf(dispatch, values, 1);
  if (form === "bulk") edited.quantizeSeq(dispatch, [stream], 5, 1);
  else for (let t = 0; t < 5; t++) edited.quantize({ ...dispatch, posStart: 4 + t }, [stream], 1 + t);
  return compare(dispatch, stream, 5, 1);
}

testTable(
  "a mistake is found where",
  mistakes.flatMap(({ name, forms = ["bulk", "one"], ...mistake }) =>
    forms.map((form) => ({ name: `${name}, ${form}`, form, ...mistake })),
  ),
  ({ form, headDim = 128, values, ...mistake }) => {
    const source = values?.(headDim) ?? sourceValues(headDim, 8 * 3, 4);
    expectRight(differences(undefined, form, headDim, source));
    const found = differences(mistake, form, headDim, source);
    expect(() => expectRight(found)).toThrow();
  },
);
