import { afterAll, expect } from "bun:test";
import { Device, hadamardQuantizeKv, hadamardQuantizeKvSeq } from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import { boundariesOf, bytesPerRow, hadamardRotate, normsPerPos, unpackCodes } from "../../src/reference/index.ts";
import { codeFormats, formatName } from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

// A one-hot vector has coordinates of one magnitude. Above 256 values scaleFactorD512 puts them, plus
// and minus, on each boundary in turn; the probe shows which factor does so in spite of rounding.

const device = Device.open();
afterAll(() => device.dispose());

const hot = 300;

function oneHot(headDim: number) {
  const values = new Float32Array(headDim);
  values[hot] = 1;
  return values;
}

/** Of the factors next to each boundary, the one that scales a one-hot vector to it. */
function factorsFor(boundaries: readonly number[], headDim: number): readonly number[] {
  const offsets = [0, 1, -1, 2, -2];
  const candidates = boundaries.flatMap((boundary) => {
    const bits = new Uint32Array(Float32Array.of(boundary).buffer);
    return offsets.map((offset) => at(new Float32Array(Uint32Array.of(at(bits, 0) + offset).buffer), 0));
  });
  using src = device.tensor("f32", [1, headDim]).set(oneHot(headDim));
  using packed = device.tensor("u8", [1, 1, headDim / 2]);
  using norms = device.tensor("f32", [1, 1, normsPerPos(headDim)]);
  using scaled = device.tensor("f32", [candidates.length, headDim]);
  using pass = device.pass();
  for (const [i, scaleFactorD512] of candidates.entries()) {
    const call = { src, packed, norms, bits: 4, writePos: 0, rmsScratch: scaled.slice(i, i + 1) } as const;
    hadamardQuantizeKv(pass, { ...call, scaleFactorD512 });
  }
  pass.commitAndWait();
  return boundaries.map((boundary, k) => {
    const first = k * offsets.length;
    const found = offsets.findIndex(
      (_, i) => Math.abs(at(scaled.view(), (first + i) * headDim)) === Math.fround(boundary),
    );
    if (found < 0) throw new Error(`no factor next to ${boundary} scales the vector to it`);
    return at(candidates, first + found);
  });
}

testTable(
  "a value on a boundary takes the lower code",
  [512, 1024].flatMap((headDim) =>
    codeFormats.map((format) => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
  ),
  ({ headDim, format }) => {
    const positive = boundariesOf(format.bits).filter((boundary) => boundary > 0);
    const [rows, rowBytes] = [2 * positive.length, bytesPerRow(headDim, format)];
    using src = device.tensor("f32", [1, 1, headDim]).set(oneHot(headDim));
    using packed = device.tensor("u8", [1, rows, rowBytes]);
    using norms = device.tensor("f32", [1, rows, normsPerPos(headDim)]);
    using pass = device.pass();
    for (const [k, scaleFactorD512] of factorsFor(positive, headDim).entries()) {
      const call = { packed, norms, ...format, scaleFactorD512 };
      hadamardQuantizeKvSeq(pass, { src, ...call, writePosStart: 2 * k });
      hadamardQuantizeKv(pass, { src: src.reshape([1, headDim]), ...call, writePos: 2 * k + 1 });
    }
    pass.commitAndWait();

    const half = 2 ** (format.bits - 1);
    const rotated = [...hadamardRotate(Float64Array.from(oneHot(headDim)))];
    expect(new Set(rotated.map(Math.sign)).size).toBe(2);
    for (let row = 0; row < rows; row++) {
      const k = row >> 1;
      const codes = unpackCodes(packed.view().subarray(row * rowBytes, (row + 1) * rowBytes), headDim, format);
      expect([...codes]).toEqual(rotated.map((y) => (y > 0 ? half + k : half - 2 - k)));
    }
  },
);
