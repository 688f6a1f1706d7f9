import { display, refused } from "../checks.ts";
import { dtypeSize, floatDTypes } from "../device/dtypes.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import {
  bytesPerRow,
  normsPerPosition,
  type QuantizedFormat,
  type QuantizedFormatArgs,
  useFormat,
} from "../ops/quantizedCache/quantizedFormat.ts";
import { OptionNames } from "../optionNames.ts";

/** How K or V is stored: in a dtype, or as codes. */
export type KvFormat = DecodeDType | QuantizedFormatArgs;

/** @internal How K or V is stored, checked. */
export interface StreamFormat {
  /** Of a row's elements; u8 for codes. */
  readonly dtype: DecodeDType | "u8";
  /** Elements of the row of one head vector. */
  readonly rowLength: number;
  /** Bytes of that row. */
  readonly rowBytes: number;
  /** Norms of one head vector; 0 for a dense format. */
  readonly normsPerPos: number;
  readonly codes: QuantizedFormat | undefined;
  /** For messages and files. */
  readonly text: string;
}

const formatNames = new OptionNames<QuantizedFormatArgs>("a format", { bits: true, packing: true });

/** @internal Checks the format that a caller gave for K or V. */
export function useKvFormat(value: unknown, argument: string, headDim: number): StreamFormat {
  if (typeof value === "object" && value !== null) {
    formatNames.check(value, `${argument}.`);
    const { bits, packing } = value as Partial<QuantizedFormatArgs>;
    const codes = useFormat(bits, packing, `${argument}.`, `${argument}.`);
    const rowBytes = bytesPerRow(headDim, codes);
    return {
      dtype: "u8",
      rowLength: rowBytes,
      rowBytes,
      normsPerPos: normsPerPosition(headDim),
      codes,
      text: `${codes.bits} bits ${codes.packing}`,
    };
  }
  const dtype = floatDTypes.find((name) => name === value);
  if (dtype === undefined) {
    throw refused(argument, `expected "f32", "f16", "bf16" or { bits, packing }, got ${display(value)}`);
  }
  return {
    dtype,
    rowLength: headDim,
    rowBytes: headDim * dtypeSize(dtype),
    normsPerPos: 0,
    codes: undefined,
    text: dtype,
  };
}

/** @internal Refuses rows of another dtype than an append or an attend takes. */
export function checkRowDType(argument: string, { dtype }: Tensor): void {
  if (!floatDTypes.some((each) => each === dtype)) {
    throw refused(argument, `expected f32, f16 or bf16, got ${dtype}`, "unsupported");
  }
}
