import { afterAll, expect } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { Device, dequantizeKv, hadamardQuantizeKvSeq, type KvCacheBytesArgs, kvCacheBytes } from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import { boundariesOf, CODEBOOKS, type CodeFormat } from "../../src/reference/index.ts";
import { codeFormats, formatName, headSizes } from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

const device = Device.open();
afterAll(() => device.dispose());

/** Mean squared error of a round trip, relative to the mean square of `values`. */
function distortion(headDim: number, format: CodeFormat, values: Float32Array): number {
  const rows = values.length / headDim;
  const { bytesPerRow, normsPerPos } = kvCacheBytes({
    headDim,
    nKvHeads: 1,
    capacity: rows,
    ...format,
  } as KvCacheBytesArgs);
  using src = device.tensor("f32", [rows, 1, headDim]).set(values);
  using packed = device.tensor("u8", [1, rows, bytesPerRow]);
  using norms = device.tensor("f32", [1, rows, normsPerPos]);
  using out = device.tensor("f32", [1, rows, headDim]);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src, packed, norms, ...format, writePosStart: 0 });
  dequantizeKv(pass, { packed, norms, out, ...format });
  pass.commitAndWait();
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

const widths = codeFormats.filter(({ packing, bits }) => packing !== "dense" || bits < 4);

for (const headDim of headSizes) {
  const values = normalArray(10_000 * headDim, 1, headDim);
  testTable(
    `distortion of 10,000 normal vectors, D=${headDim}`,
    widths.map((format) => ({ name: formatName(format), format })),
    ({ format }) => {
      const measured = distortion(headDim, format, values);
      // Each norm is of at most 256 coordinates.
      const expected = expectedDistortion(Math.min(headDim, 256), format);
      expect(Math.abs(measured / expected - 1)).toBeLessThan(0.01);
      expect(measured).toBeLessThan(1.01 * CODEBOOKS[format.bits].distortion);
    },
  );
}

// A channel that outweighs the rest becomes coordinates of two values, plus and
// minus, with the rest as noise around them. Codes of 2 and 3 bits are too coarse
// for that, and blocks of 16 coordinates (80, 112) too short to spread it.
for (const headDim of [64, 96, 128, 192, 256, 512]) {
  const values = normalArray(10_000 * headDim, 1, 77);
  for (let i = 9; i < values.length; i += headDim) values[i] = at(values, i) * 50;
  testTable(
    `one channel 50 times larger costs at most 3%, D=${headDim}`,
    widths.filter(({ bits }) => bits >= 4).map((format) => ({ name: formatName(format), format })),
    ({ format }) => {
      expect(distortion(headDim, format, values)).toBeLessThan(1.03 * CODEBOOKS[format.bits].distortion);
    },
  );
}
