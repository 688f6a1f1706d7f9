import { checkLength, display, refused } from "../../checks.ts";
import { packingCodes } from "../../ffi/generated/codes.ts";
import { perSupport, support } from "../../ffi/support.ts";

/** Bits of a code in a quantized cache. */
export type QuantizedBits = 2 | 3 | 4 | 5 | 6 | 8;

/**
 * How codes lie in a row.
 *
 * - `nibble`, 4 bits: two to a byte, the even index in the low half
 * - `byte`, 5, 6 or 8 bits: one to a byte
 * - `dense`, 2, 3, 5 or 6 bits: without gaps, code i in bits i * bits and up of the row, lowest bit first
 */
export type QuantizedPacking = "nibble" | "byte" | "dense";

/** How a cache is quantized. */
export interface QuantizedFormatArgs {
  /** Bits of a code. */
  readonly bits: QuantizedBits;
  /** How codes lie in a row: nibble for 4 bits, byte for 5, 6 and 8, dense for 2 and 3 unless given. */
  readonly packing?: QuantizedPacking | undefined;
}

/** A supported format, with what the library calls it. */
export interface QuantizedFormat {
  readonly bits: QuantizedBits;
  readonly packing: QuantizedPacking;
  /** `MA_PACKING_*`. */
  readonly packingCode: number;
  /** Bits of a row that a code takes. */
  readonly codeWidth: number;
}

/** Every format that has kernels; of each width the default packing first. */
export const quantizedFormats = perSupport<readonly QuantizedFormat[]>(({ quantizedCache }) =>
  quantizedCache.packings.flatMap(({ packing, bits }) =>
    bits.map((width) => ({
      bits: width,
      packing,
      packingCode: packingCodes[packing],
      codeWidth: packing === "byte" ? 8 : width,
    })),
  ),
);

/**
 * The format that a caller asks for; `unsupported` with the list of those there are. The paths stand before `bits` and
 * `packing` in errors, such as `k.`.
 */
export function useFormat(bits: unknown, packing: unknown, bitsPath = "", packingPath = ""): QuantizedFormat {
  for (const format of quantizedFormats()) {
    if (format.bits === bits && (packing === undefined || format.packing === packing)) return format;
  }
  checkLength(bits, `${bitsPath}bits`);
  const packingName = `${packingPath}packing`;
  if (packing !== undefined && typeof packing !== "string") {
    throw refused(packingName, `expected "nibble", "byte" or "dense", got ${display(packing)}`);
  }
  const supported = quantizedFormats()
    .map((format) => `${format.bits} ${format.packing}`)
    .join(", ");
  const isWidth = quantizedFormats().some((format) => format.bits === bits);
  throw isWidth
    ? refused(packingName, `${display(packing)} is not for ${bits} bits; supported: ${supported}`, "unsupported")
    : refused(`${bitsPath}bits`, `${bits} has no codebook; supported: ${supported}`, "unsupported");
}

/** Bytes of a row of `headDim` codes; `unsupported` with the sizes there are. */
export function bytesPerRow(headDim: number, format: QuantizedFormat): number {
  const { headDims, otherHeadDims } = support().quantizedCache;
  const { least, most } = otherHeadDims;
  const isPowerOfTwo = headDim >= least && headDim <= most && (headDim & (headDim - 1)) === 0;
  const rowBits = headDim * format.codeWidth;
  if ((!isPowerOfTwo && !headDims.includes(headDim)) || rowBits % 8 !== 0) {
    throw refused(
      "headDim",
      `${headDim} has no kernel for codes of ${format.codeWidth} bits; supported: ${headDims.join(", ")}, and ` +
        `powers of two from ${least} to ${most} whose codes fill whole bytes`,
      "unsupported",
    );
  }
  return rowBits / 8;
}

/** Norms that are stored for a head vector. */
export function normsPerPosition(headDim: number): number {
  return Math.max(1, headDim / 256);
}
