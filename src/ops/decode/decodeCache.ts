import { refused } from "../../checks.ts";
import type { FloatDType } from "../../device/dtypes.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { isTensor, Tensor, type TensorRange } from "../../device/tensor.ts";
import { OptionNames } from "../../optionNames.ts";
import {
  bytesPerRow,
  normsPerPosition,
  type QuantizedFormat,
  type QuantizedFormatArgs,
  useFormat,
} from "../quantizedCache/quantizedFormat.ts";
import type { QuantizedCache } from "../quantizedCache/quantizedStreams.ts";
import { checkAxis, checkPlanes, fromEnd } from "../shapes.ts";

/** Element types of q, out and dense caches. */
export type DecodeDType = FloatDType;

/** K or V as Hadamard-quantized codes: what {@link hadamardQuantizeKv} wrote, with the format it was told. */
export interface DecodeCodes extends QuantizedCache, QuantizedFormatArgs {}

/** K or V of a cache: dense, or codes. */
export type DecodeCache = Tensor<DecodeDType> | DecodeCodes;

const codeNames = new OptionNames<DecodeCodes>("a quantized cache", {
  packed: true,
  norms: true,
  bits: true,
  packing: true,
});

/** Made once: text that is put together anew costs a call more than its checks. */
const namesOf = {
  k: { path: "k.", packedName: "k.packed", normsName: "k.norms" },
  v: { path: "v.", packedName: "v.packed", normsName: "v.norms" },
} as const;

/** What a format says of rows of one head size. */
interface CodedRows {
  readonly headDim: number;
  /** As the caller gave them. */
  readonly givenBits: unknown;
  readonly givenPacking: unknown;
  readonly format: QuantizedFormat;
  readonly bytes: number;
}

/** Of the last calls' K and V, which mostly are of one format: to look it up anew takes a call a twentieth of its time. */
const lastRows: { k: CodedRows | undefined; v: CodedRows | undefined } = { k: undefined, v: undefined };

function useRows(name: "k" | "v", headDim: number, bits: unknown, packing: unknown): CodedRows {
  const last = lastRows[name];
  if (last?.headDim === headDim && last.givenBits === bits && last.givenPacking === packing) return last;
  const { path } = namesOf[name];
  const format = useFormat(bits, packing, path, path);
  const rows = { headDim, givenBits: bits, givenPacking: packing, format, bytes: bytesPerRow(headDim, format) };
  lastRows[name] = rows;
  return rows;
}

/** @internal K or V of a call, checked. */
export interface DecodeStream {
  /** Values, or codes. */
  readonly rows: TensorRange;
  readonly norms: TensorRange | undefined;
  readonly packingCode: number;
  readonly bits: number;
}

/** @internal Checks K or V; `axes` names the axes before the last. */
export function useCache(
  value: unknown,
  device: DeviceLifetime,
  name: "k" | "v",
  headDim: number,
  axes: string,
): DecodeStream {
  if (isTensor(value) || typeof value !== "object" || value === null) {
    const rows = Tensor.use(value, device, name);
    checkPlanes(rows, name, axes, "D");
    checkAxis(name, "D", fromEnd(rows, 1), headDim, "q");
    return { rows, norms: undefined, packingCode: 0, bits: 0 };
  }
  const { path, packedName, normsName } = namesOf[name];
  codeNames.check(value, path);
  const { packed, norms, bits, packing } = value as Partial<DecodeCodes>;
  const { format, bytes } = useRows(name, headDim, bits, packing);
  const rows = Tensor.use(packed, device, packedName);
  checkPlanes(rows, packedName, axes, "bytesPerRow");
  if (fromEnd(rows, 1) !== bytes) {
    const where = `a D of ${headDim} at ${format.bits} bits, packing ${format.packing}`;
    checkAxis(packedName, "bytesPerRow", fromEnd(rows, 1), bytes, where);
  }
  const normRange = Tensor.use(norms, device, normsName);
  checkPlanes(normRange, normsName, axes, "normsPerPos");
  const rowNorms = normsPerPosition(headDim);
  if (fromEnd(normRange, 1) !== rowNorms) {
    checkAxis(normsName, "normsPerPos", fromEnd(normRange, 1), rowNorms, `a D of ${headDim}`);
  }
  checkSameRows(normsName, normRange.shape, packedName, rows.shape);
  return { rows, norms: normRange, packingCode: format.packingCode, bits: format.bits };
}

/** @internal Refuses `argument` where its axes before the last are not those of another tensor. */
export function checkSameRows(
  argument: string,
  shape: readonly number[],
  where: string,
  expected: readonly number[],
): void {
  let same = shape.length === expected.length;
  for (let axis = 0; axis + 1 < expected.length; axis++) same &&= shape[axis] === expected[axis];
  if (!same) {
    throw refused(argument, `its rows are [${shape.slice(0, -1)}], but [${expected.slice(0, -1)}] in ${where}`);
  }
}
