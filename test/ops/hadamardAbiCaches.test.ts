import { describe, expect, test } from "bun:test";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import { statusCodes } from "../helpers/abi.ts";
import { HadamardAbi, type HadamardRefusal, refused, type Spoil } from "../helpers/hadamardAbi.ts";
import { allCalls, type CallName } from "../helpers/hadamardCalls.ts";
import { promisedHeadSizes } from "../helpers/promised.ts";
import { codeFormats, headSizes, isWhole } from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

// TypeScript derives extents from shapes and formats from a table of its own; a caller of the C ABI states them.

const abi = new HadamardAbi();
const maxU32 = 2 ** 32 - 1;
const positionName = { token: "writePos", tokens: "writePosStart", decode: "readPosStart" } as const;

const cacheCases = allCalls.flatMap((call): readonly HadamardRefusal[] => [
  refused(call, "no slot", { cache: { capacity: 0 } }, "invalidArgument", "packed", "capacity", 0),
  refused(
    call,
    "a ring of no slot",
    { cache: { capacity: 0, isSliding: 1 } },
    "invalidArgument",
    "packed",
    "capacity",
    0,
  ),
  refused(call, "no batch", { batch: 0 }, "invalidArgument", "batch", 0),
  refused(call, "2^32 heads in all", { batch: 2 ** 31 }, "overflow", "batch", 2 ** 31, "nKvHeads", 2),
  refused(
    call,
    "vectors of one batch for more",
    { batch: 5 },
    "bufferTooSmall",
    call === "decode" ? "out" : "src",
    "batch",
    5,
  ),
  refused(call, "a flag of 2", { cache: { isSliding: 2 } }, "invalidArgument", "isSliding", 2),
  refused(
    call,
    "2^96 elements",
    { cache: { nKvHeads: maxU32, capacity: maxU32, headDim: 4096 } },
    "bufferTooSmall",
    call === "decode" ? "out" : "src",
  ),
  ...[Number.NaN, 0, -1, Number.POSITIVE_INFINITY].map((scaleFactorD512) =>
    refused(call, `factor ${scaleFactorD512}`, { cache: { scaleFactorD512 } }, "invalidArgument", "scaleFactorD512"),
  ),
  ...[1, 2, 63, 65, 160, 384, 8192, maxU32].map((headDim) =>
    refused(
      call,
      `head size ${headDim}`,
      { cache: { headDim } },
      "unsupported",
      "headDim",
      headDim,
      promisedHeadSizes.join(", "),
      4096,
    ),
  ),
  refused(call, "12 bits a row", { cache: { headDim: 4 }, bits: 3, packing: 3 }, "unsupported", "headDim", 4, 3),
  refused(call, "beyond a linear cache", { cache: { position: 5 } }, "overflow", positionName[call], 5),
  refused(call, "a cache too small for its end", { cache: { capacity: 100 } }, "bufferTooSmall", "packed", 320, 6400),
  ...(call === "token"
    ? []
    : [
        refused(
          call,
          "beyond 2^32",
          { cache: { position: maxU32, isSliding: 1 } },
          "overflow",
          positionName[call],
          maxU32,
          3,
        ),
        refused(
          call,
          "a run beyond a linear cache",
          { cache: { position: 3 } },
          "overflow",
          positionName[call],
          3,
          "nTokens",
          5,
        ),
        refused(call, "more than a ring holds", { cache: { isSliding: 1 }, nTokens: 6 }, "overflow", "nTokens", 6, 5),
      ]),
]);
const sourceCases = [
  refused("tokens", "source beyond 2^32", { srcTokOffset: maxU32 }, "bufferTooSmall", "srcTokOffset", maxU32, 3, 4),
  refused(
    "tokens",
    "source of 2^43 bytes",
    { srcTokOffset: maxU32 - 3, nSrcTokens: maxU32 },
    "bufferTooSmall",
    "src",
    2048,
  ),
];

testTable("refused: caches and positions", [...cacheCases, ...sourceCases], abi.check);

describe("formats", () => {
  // A source or result without room is refused after the format and before a kernel is compiled.
  const tooSmall = { k: { vectors: { ...abi.k.vectors, lengthLow: 4 } } };
  const trial = (call: CallName, spoil: Spoil) => abi.send(call, { ...spoil, ...tooSmall });

  test("just those of the table are served, and every refusal lists them", () => {
    let served = 0;
    for (const packing of [0, 1, 2, 3, 4, maxU32]) {
      for (const bits of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, maxU32]) {
        const isServed = codeFormats.some((format) => format.bits === bits && packingCodes[format.packing] === packing);
        const expected = isServed ? statusCodes.bufferTooSmall : statusCodes.unsupported;
        for (const call of ["tokens", "decode"] as const) {
          expect([bits, packing, trial(call, { bits, packing })]).toEqual([bits, packing, expected]);
          if (isServed) served += 1;
          else
            expect(abi.scene.lastError()).toContain(
              "(nibble): 4 bits; packing 2 (byte): 5, 6, 8 bits; packing 3 (dense): 2, 3, 5, 6",
            );
        }
      }
    }
    expect(served).toBe(2 * codeFormats.length);
  });

  test("just the head sizes that TypeScript knows, in every format", () => {
    for (const format of codeFormats) {
      for (let headDim = 1; headDim <= 8192; headDim += headDim < 600 ? 1 : 8) {
        const isPower = Number.isInteger(Math.log2(headDim)) && headDim >= 4 && headDim <= 4096;
        const isServed = (isPower || headSizes.includes(headDim)) && isWhole(headDim, format);
        const expected = isServed ? statusCodes.bufferTooSmall : statusCodes.unsupported;
        const spoil = { bits: format.bits, packing: packingCodes[format.packing], cache: { headDim } };
        expect([headDim, format, trial("tokens", spoil)]).toEqual([headDim, format, expected]);
      }
    }
  });
});
