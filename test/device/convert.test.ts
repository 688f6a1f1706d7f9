import { describe, expect, test } from "bun:test";
import {
  bfloat16ToFloat32,
  dtypeSize,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

interface Format {
  readonly name: string;
  readonly exponentBits: number;
  readonly fractionBits: number;
  readonly encode: (values: Float32Array) => Uint16Array;
  readonly decode: (bits: Uint16Array) => Float32Array;
}

const formats: readonly Format[] = [
  { name: "f16", exponentBits: 5, fractionBits: 10, encode: float32ToFloat16, decode: float16ToFloat32 },
  { name: "bf16", exponentBits: 8, fractionBits: 7, encode: float32ToBfloat16, decode: bfloat16ToFloat32 },
];

/** The value of a bit pattern by the definition of IEEE 754: (-1)^s 2^(e - bias) 1.f, or 0.f for subnormals. */
function definedValue(bits: number, { exponentBits, fractionBits }: Format): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponentMax = 2 ** exponentBits - 1;
  const bias = 2 ** (exponentBits - 1) - 1;
  const exponent = (bits >> fractionBits) & exponentMax;
  const fraction = (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits;
  if (exponent === exponentMax) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * 2 ** (1 - bias) * fraction : sign * 2 ** (exponent - bias) * (1 + fraction);
}

/** The float next to a positive `value`: above it for `step` 1, below it for -1. */
function neighbour(value: number, step: 1 | -1): number {
  const float = new Float32Array([value]);
  const word = new Uint32Array(float.buffer);
  word[0] = (word[0] as number) + step;
  return float[0] as number;
}

const allBits = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);

describe.each([...formats])("$name", (format) => {
  const infinity = (2 ** format.exponentBits - 1) << format.fractionBits;

  test("every one of the 65,536 patterns has the value of its definition", () => {
    const decoded = format.decode(allBits);
    for (const bits of allBits) {
      if (!Object.is(decoded[bits], definedValue(bits, format))) throw new Error(`pattern ${bits}: ${decoded[bits]}`);
    }
    expect(decoded.length).toBe(65_536);
  });

  test("every value that is not NaN keeps its pattern on the way there and back", () => {
    const numbers = allBits.filter((bits) => !Number.isNaN(definedValue(bits, format)));
    expect(format.encode(format.decode(numbers))).toEqual(numbers);
    expect(numbers.length).toBe(65_536 - 2 * (2 ** format.fractionBits - 1));
  });

  test("between every two neighbours, values round to the nearer one and the midpoint to the even one", () => {
    // The step past the largest finite value ends at 2^(bias + 1): what rounds there becomes infinity.
    const overflow = 2 ** (2 ** (format.exponentBits - 1));
    for (const sign of [1, -1]) {
      const inputs = new Float32Array(3 * infinity);
      const expected = new Uint16Array(3 * infinity);
      const signBit = sign < 0 ? 0x8000 : 0;
      for (let lower = 0; lower < infinity; lower++) {
        const upper = lower + 1;
        const top = upper === infinity ? overflow : definedValue(upper, format);
        const midpoint = (definedValue(lower, format) + top) / 2;
        if (Math.fround(midpoint) !== midpoint) throw new Error(`midpoint above ${lower} is no float`);
        inputs.set([sign * neighbour(midpoint, -1), sign * midpoint, sign * neighbour(midpoint, 1)], 3 * lower);
        const even = lower % 2 === 0 ? lower : upper;
        expected.set([lower | signBit, even | signBit, upper | signBit], 3 * lower);
      }
      expect(format.encode(inputs)).toEqual(expected);
    }
  });

  test("NaN stays NaN whatever its payload, and infinities stay", () => {
    const words = Uint32Array.from([
      0x7f80_0001, 0x7f80_ffff, 0x7fff_ffff, 0x7fc0_0000, 0xff80_0001, 0xffff_ffff, 0x7fff_8000,
    ]);
    for (const bits of format.encode(new Float32Array(words.buffer))) {
      expect(Number.isNaN(definedValue(bits, format))).toBe(true);
    }
    const infinities = Float32Array.of(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY);
    expect([...format.encode(infinities)]).toEqual([infinity, infinity | 0x8000]);
  });

  test("zeros keep their sign, and what is too small becomes zero", () => {
    const smallest = 2 ** -149;
    expect([...format.encode(Float32Array.of(0, -0, smallest, -smallest))]).toEqual([0, 0x8000, 0, 0x8000]);
  });

  test("a view that begins inside a buffer is read from there", () => {
    expect([...format.encode(Float32Array.of(9, 1, 2).subarray(1))]).toEqual([...format.encode(Float32Array.of(1, 2))]);
  });
});

test("conversions and sizes refuse what is no such array or type", () => {
  const conversions = { float32ToFloat16, float16ToFloat32, float32ToBfloat16, bfloat16ToFloat32 };
  for (const convert of Object.values(conversions)) {
    const argument = convert.name.startsWith("float32") ? "values" : "bits";
    for (const value of [null, 3, 3n, [1], new Float64Array(1), "1"]) {
      expectRefusal(() => convert(value as never), "invalid-argument", argument);
    }
    const detached = argument === "values" ? new Float32Array(2) : new Uint16Array(2);
    detached.buffer.transfer();
    expectRefusal(() => convert(detached as never), "invalid-argument", argument, "transferred");
  }
  for (const name of ["f64", "toString", "__proto__", 3]) {
    expectRefusal(() => dtypeSize(name as never), "invalid-argument", "dtype", "bf16");
  }
});
