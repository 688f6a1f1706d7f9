import { kvCacheBytes, type Tensor } from "../../src/index.ts";
import {
  boundariesOf,
  CODEBOOKS,
  dequantizeVector,
  nmse,
  quantizeVector,
  roundTo,
  unpackCodes,
} from "../../src/reference/index.ts";
import { formatBytes, formatNumber } from "../lib/table.ts";
import { type Check, verdict } from "./check.ts";
import type { AttentionDType, KeyValue } from "./choice.ts";
import { type LayerInputs, swapAxes } from "./inputs.ts";
import type { KvCodes, PlainKeyValue, QuantizedKeyValue, QuantizedRows, RoundTrip } from "./round-trip.ts";

/** Head vectors of K, and of V, that are compared. */
const sampledVectors = 32;
/** A code may be the neighbour's where the value lies this close to the boundary between them. */
const boundaryWidth = 1e-5;
/** Of what is computed in float32, relative to a norm. */
const float32Error = 1e-6;
/** Largest relative error of a rounding. */
const roundoff: Readonly<Record<AttentionDType, number>> = { bf16: 2 ** -8, f16: 2 ** -11 };

/** K and V of the prompt, head-major [kvHeads, tokens, headDim]. */
interface Rows {
  readonly k: Float32Array;
  readonly v: Float32Array;
}

/** Whether the cache holds what the oracle says; what it costs and changes. */
export function checkRoundTrip(inputs: LayerInputs, roundTrip: RoundTrip, out: Tensor<AttentionDType>): Check[] {
  const { tokens, kvHeads, headDim } = inputs;
  const headMajor = (values: Float32Array) =>
    swapAxes(values.subarray(0, tokens * kvHeads * headDim), tokens, kvHeads, headDim);
  const rows = { k: headMajor(inputs.k), v: headMajor(inputs.v) };
  const { cache, readBack } = roundTrip;
  const check = cache.codes === undefined ? checkPlain(cache, rows) : checkCodes(cache, readBack, rows, headDim);
  return [
    check,
    { right: true, line: memoryLine(inputs, roundTrip) },
    { right: true, line: changeLine(roundTrip, rows, out) },
  ];
}

/** Every element of a plain cache is the nearest of its dtype. */
function checkPlain({ k, v }: PlainKeyValue, rows: Rows): Check {
  const wrong = (tensor: Tensor<"f16" | "f32">, expected: Float32Array) =>
    tensor
      .toFloat32Array()
      .reduce((sum, value, i) => sum + (value === roundTo(tensor.dtype, expected[i] as number) ? 0 : 1), 0);
  const all = k.length + v.length;
  const right = all - wrong(k, rows.k) - wrong(v, rows.v);
  return {
    right: right === all,
    line: `round trip: ${right} of ${all} elements are the nearest ${k.dtype} to the source: ${verdict(right === all)}`,
  };
}

/** Codes and norms of sampled vectors are the oracle's; what was read back is what the oracle makes of them. */
function checkCodes(cache: QuantizedKeyValue, readBack: KeyValue<AttentionDType>, rows: Rows, headDim: number): Check {
  const compared = 2 * sampledVectors * headDim;
  const right = (["k", "v"] as const).reduce(
    (sum, name) => sum + rightElements(cache[name], cache.codes, readBack[name], rows[name], headDim),
    0,
  );
  return {
    right: right === compared,
    line:
      `round trip: ${right} of ${compared} sampled elements have the oracle's code and norm, ` +
      `and are read back as it does: ${verdict(right === compared)}`,
  };
}

function rightElements(
  { packed, norms }: QuantizedRows,
  format: KvCodes,
  readBack: Tensor<AttentionDType>,
  rows: Float32Array,
  headDim: number,
): number {
  const boundaries = boundariesOf(format.bits);
  const vectors = rows.length / headDim;
  const read = readBack.toFloat32Array();
  let right = 0;
  for (let sample = 0; sample < sampledVectors; sample++) {
    const index = Math.round((sample * (vectors - 1)) / (sampledVectors - 1));
    const vectorOf = <T extends Uint8Array | Float32Array>(values: T) => {
      const size = values.length / vectors;
      return values.subarray(index * size, (index + 1) * size);
    };
    const wanted = quantizeVector(vectorOf(rows), format);
    const codes = unpackCodes(vectorOf(packed.view()), headDim, format);
    const actualNorms = vectorOf(norms.view());
    const smallError = Math.max(...wanted.norms) * float32Error;
    if (!wanted.norms.every((norm, i) => Math.abs(norm - (actualNorms[i] as number)) <= smallError)) continue;
    const decoded = dequantizeVector(codes, actualNorms, format);
    const actual = vectorOf(read);
    for (let i = 0; i < headDim; i++) {
      const [code, wantedCode, value] = [codes[i], wanted.codes[i], decoded[i]] as [number, number, number];
      // Between neighbours lies the boundary with the index of the lower.
      const boundary = boundaries[Math.min(code, wantedCode)] ?? Number.NaN;
      const isClose = Math.abs((wanted.scaled[i] as number) - boundary) <= boundaryWidth;
      const codeIsRight = code === wantedCode || (Math.abs(code - wantedCode) === 1 && isClose);
      const error = Math.abs((actual[i] as number) - value);
      if (codeIsRight && error <= Math.abs(value) * roundoff[readBack.dtype] + smallError) right++;
    }
  }
  return right;
}

/** What the cache costs beside f16. */
function memoryLine({ kvHeads, headDim, tokens }: LayerInputs, { cost }: RoundTrip): string {
  const plain = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity: tokens, dtype: "f16" });
  const saved = plain.total - cost.total;
  return (
    `memory: K and V take ${formatBytes(cost.total)}, ${formatNumber(cost.bitsPerValue)} bits a value; ` +
    `in f16 they take ${formatBytes(plain.total)}: ` +
    `${formatBytes(Math.abs(saved))} ${saved < 0 ? "more" : "saved"}, ${formatNumber(cost.total / plain.total)} of it`
  );
}

/** What reading back changes in K and V, and in the attention output. */
function changeLine({ cache, readBack, out: changed }: RoundTrip, { k, v }: Rows, out: Tensor<AttentionDType>): string {
  const [before, after] = [out.toFloat32Array(), changed.toFloat32Array()];
  const largest = before.reduce((largest, value, i) => Math.max(largest, Math.abs(value - (after[i] as number))), 0);
  const exponential = (value: number) => value.toExponential(2);
  const optimum =
    cache.codes === undefined
      ? ""
      : ` (the optimum on Gaussian data: ${exponential(CODEBOOKS[cache.codes.bits].distortion)})`;
  return (
    `change: NMSE of K ${exponential(nmse(readBack.k.toFloat32Array(), k))}, ` +
    `of V ${exponential(nmse(readBack.v.toFloat32Array(), v))}${optimum}; ` +
    `of the attention output ${exponential(nmse(after, before))}, at most ${exponential(largest)} an element`
  );
}
