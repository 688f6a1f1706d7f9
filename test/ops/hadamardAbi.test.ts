import { afterAll, describe, expect, test } from "bun:test";
import type { Block } from "../../src/ffi/block.ts";
import { type HadamardCacheRecord, packingCodes } from "../../src/ffi/hadamardLayout.ts";
import { dtypeCodes, NativeScene, statusCodes, tensorRecord } from "../helpers/abi.ts";
import {
  allCalls,
  type CallArgs,
  type CallName,
  hadamardCalls as calls,
  type StreamRecords,
} from "../helpers/hadamardCalls.ts";
import { codeFormats, headSizes, isWhole } from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

// TypeScript derives extents from shapes and formats from a table of its own; a caller of the C ABI states them.

const scene = new NativeScene();
const otherScene = new NativeScene();
afterAll(() => {
  scene.close();
  otherScene.close();
});

const { native } = scene;
const { f32, f16, bf16, u8 } = dtypeCodes;
const maxU32 = 2 ** 32 - 1;

/** Head vectors, codes and norms of K and of V, and a scratch: 2 heads of 64 values, 5 slots, up to 4 tokens. */
const buffers = Array.from({ length: 7 }, () => scene.buffer(4096));
const [vectorsK, packedK, normsK, vectorsV, packedV, normsV, scratch] = buffers.map(({ handle }) => handle) as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];
for (const [index, { bytes }] of buffers.entries()) bytes.fill(17 * (index + 1));

const part = (buffer: number, dtype: number, length: number) => tensorRecord(buffer, dtype, 0, length);
const rowBytes = 32;

type Spoil = Partial<Omit<CallArgs, "k" | "cache">> & {
  readonly k?: Partial<StreamRecords>;
  readonly cache?: Partial<HadamardCacheRecord>;
};

const k: StreamRecords = {
  vectors: part(vectorsK, f32, 2048),
  packed: part(packedK, u8, 2 * 5 * rowBytes),
  norms: part(normsK, f32, 40),
};
const v: StreamRecords = {
  vectors: part(vectorsV, f32, 2048),
  packed: part(packedV, u8, 2 * 5 * rowBytes),
  norms: part(normsV, f32, 40),
};

function argsOf({ k: ofK, cache, ...rest }: Spoil): CallArgs {
  return {
    v: {},
    rmsScratch: undefined,
    bits: 4,
    packing: packingCodes.nibble,
    nTokens: 3,
    srcTokOffset: 1,
    outDtype: f32,
    ...rest,
    k: { ...k, ...ofK },
    cache: { headDim: 64, nKvHeads: 2, position: 1, capacity: 5, isSliding: 0, scaleFactorD512: 1, ...cache },
  };
}

interface AbiCase {
  readonly name: string;
  readonly call: CallName;
  readonly spoil: Spoil;
  readonly poke?: (block: Block) => void;
  readonly status: keyof typeof statusCodes;
  readonly says: readonly (string | number)[];
}

function refused(
  call: CallName,
  name: string,
  spoil: Spoil,
  status: AbiCase["status"],
  ...says: (string | number)[]
): AbiCase {
  return { name: `${call}: ${name}`, call, spoil, status, says };
}

/** Names of a stream's tensors in the C ABI. */
const vectorName = (call: CallName, stream: "K" | "V") => `${call === "decode" ? "out" : "src"}${stream}`;
/** Bytes of the head vectors that a call touches, from the start of their tensor. */
const vectorBytes = { token: 512, tokens: 2048, decode: 1536 } as const;

const pass = scene.pass();
const stale = scene.buffer(4096);
native.ma_buffer_release(stale.handle);
const elsewhere = otherScene.buffer(4096);

const tensorCases = allCalls.flatMap((call): readonly AbiCase[] => {
  const bytes = vectorBytes[call];
  const [nameK, nameV] = [vectorName(call, "K"), vectorName(call, "V")];
  const both = (spoil: Partial<StreamRecords>) => ({ v: { ...v, ...spoil } });
  return [
    refused(
      call,
      "vectors too small",
      { k: { vectors: part(vectorsK, f32, bytes - 4) } },
      "bufferTooSmall",
      nameK,
      bytes - 4,
      bytes,
    ),
    refused(call, "packed too small", { k: { packed: part(packedK, u8, 319) } }, "bufferTooSmall", "packedK", 319, 320),
    refused(call, "norms too small", { k: { norms: part(normsK, f32, 36) } }, "bufferTooSmall", "normsK", 36, 40),
    refused(
      call,
      "V's vectors too small",
      both({ vectors: part(vectorsV, f32, bytes - 4) }),
      "bufferTooSmall",
      nameV,
      bytes,
    ),
    refused(
      call,
      "V's packed too small",
      both({ packed: part(packedV, u8, 319) }),
      "bufferTooSmall",
      "packedV",
      319,
      320,
    ),
    refused(call, "V's norms too small", both({ norms: part(normsV, f32, 36) }), "bufferTooSmall", "normsV", 36, 40),
    refused(
      call,
      "packed beyond its buffer",
      { k: { packed: tensorRecord(packedK, u8, 4000, 320) } },
      "bufferTooSmall",
      "packedK",
      4096,
    ),
    refused(
      call,
      "packed that wraps around 2^64",
      { k: { packed: { ...part(packedK, u8, 0), offsetLow: maxU32 - 3, offsetHigh: maxU32, lengthLow: 320 } } },
      "bufferTooSmall",
      "packedK",
    ),
    refused(
      call,
      "norms inside an element",
      { k: { norms: tensorRecord(normsK, f32, 2, 40) } },
      "invalidArgument",
      "normsK",
      2,
      4,
    ),
    refused(call, "no vectors", { k: { vectors: part(0, 0, 0) } }, "invalidHandle", nameK),
    refused(call, "stale packed", { k: { packed: part(stale.handle, u8, 320) } }, "invalidHandle", "packedK"),
    refused(
      call,
      "norms of another device",
      { k: { norms: part(elsewhere.handle, f32, 40) } },
      "invalidHandle",
      "normsK",
    ),
    refused(call, "a dtype that is none", { k: { packed: part(packedK, 99, 320) } }, "invalidArgument", "packedK", 99),
    refused(
      call,
      "packed of i8",
      { k: { packed: part(packedK, dtypeCodes.i8, 320) } },
      "unsupported",
      "packedK",
      "i8",
      "u8",
    ),
    refused(call, "norms of f16", { k: { norms: part(normsK, f16, 40) } }, "unsupported", "normsK", "f16", "f32"),
    refused(call, "vectors of u8", { k: { vectors: part(vectorsK, u8, 2048) } }, "unsupported", nameK, "u8", "f32"),
    refused(call, "V without its norms", { v: { ...v, norms: undefined as never } }, "invalidArgument", "normsV"),
    refused(call, "V without its codes", { v: { ...v, packed: undefined as never } }, "invalidArgument", "packedV"),
    refused(call, "V's norms alone", { v: { norms: v.norms } }, "invalidArgument", nameV),
    refused(
      call,
      "codes in the vectors",
      { k: { packed: part(vectorsK, u8, 320) } },
      "invalidArgument",
      "packedK",
      nameK,
      "overlap",
    ),
    refused(
      call,
      "norms in the vectors",
      { k: { norms: tensorRecord(vectorsK, f32, bytes - 4, 40) } },
      "invalidArgument",
      "normsK",
      nameK,
      "overlap",
    ),
    refused(
      call,
      "V's vectors in K's norms",
      both({ vectors: part(normsK, f32, 2048) }),
      "invalidArgument",
      nameV,
      "normsK",
      "overlap",
    ),
    ...(call === "decode"
      ? [
          refused(call, "one result", both({ vectors: k.vectors }), "invalidArgument", "outK", "outV", "overlap"),
          refused(call, "out_dtype of another type", { outDtype: bf16 }, "invalidArgument", "outK", 1, 3),
          refused(
            call,
            "V of another type",
            both({ vectors: part(vectorsV, f16, 2048) }),
            "invalidArgument",
            "outV",
            2,
            1,
          ),
        ]
      : [
          refused(call, "one packed", both({ packed: k.packed }), "invalidArgument", "packedK", "packedV", "overlap"),
          refused(
            call,
            "codes in the norms",
            { k: { packed: part(normsK, u8, 320) } },
            "invalidArgument",
            "packedK",
            "normsK",
            "overlap",
          ),
        ]),
  ];
});

const cacheCases = allCalls.flatMap((call): readonly AbiCase[] => [
  refused(call, "no slot", { cache: { capacity: 0 } }, "invalidArgument", "cache_capacity", 0),
  refused(call, "a ring of no slot", { cache: { capacity: 0, isSliding: 1 } }, "invalidArgument", "cache_capacity", 0),
  refused(call, "a flag of 2", { cache: { isSliding: 2 } }, "invalidArgument", "is_sliding", 2),
  refused(call, "2^96 elements", { cache: { nKvHeads: maxU32, capacity: maxU32, headDim: 4096 } }, "bufferTooSmall"),
  ...[Number.NaN, 0, -1, Number.POSITIVE_INFINITY].map((scaleFactorD512) =>
    refused(call, `factor ${scaleFactorD512}`, { cache: { scaleFactorD512 } }, "invalidArgument", "scale_factor_d512"),
  ),
  ...[1, 2, 63, 65, 160, 384, 8192, maxU32].map((headDim) =>
    refused(
      call,
      `head size ${headDim}`,
      { cache: { headDim } },
      "unsupported",
      "head_dim",
      headDim,
      "64, 80, 96",
      4096,
    ),
  ),
  refused(call, "12 bits a row", { cache: { headDim: 4 }, bits: 3, packing: 3 }, "unsupported", "head_dim", 4, 3),
  refused(
    call,
    "beyond a linear cache",
    { cache: { position: 5 } },
    "overflow",
    call === "token" ? "write_pos" : "_pos_start",
    5,
  ),
  refused(call, "a cache too small for its end", { cache: { capacity: 100 } }, "bufferTooSmall", "packedK", 320, 6400),
  ...(call === "token"
    ? []
    : [
        refused(call, "beyond 2^32", { cache: { position: maxU32, isSliding: 1 } }, "overflow", maxU32, 3),
        refused(
          call,
          "a run beyond a linear cache",
          { cache: { position: 3 } },
          "overflow",
          "_pos_start",
          3,
          "n_tokens",
          5,
        ),
        refused(call, "more than a ring holds", { cache: { isSliding: 1 }, nTokens: 6 }, "overflow", "n_tokens", 6, 5),
      ]),
]);
const sourceCases = [
  refused("tokens", "source beyond 2^32", { srcTokOffset: maxU32 }, "overflow", "src_tok_offset", maxU32, 3),
  refused("tokens", "source of 2^43 bytes", { srcTokOffset: maxU32 - 3 }, "bufferTooSmall", "srcK", 2048),
];

const probe = { rmsScratch: part(scratch, f32, 512) };
const probeCases: readonly AbiCase[] = [
  refused(
    "token",
    "scratch too small",
    { rmsScratch: part(scratch, f32, 508) },
    "bufferTooSmall",
    "rmsScratch",
    508,
    512,
  ),
  refused("token", "scratch of u8", { rmsScratch: part(scratch, u8, 512) }, "unsupported", "rmsScratch", "u8", "f32"),
  refused(
    "token",
    "scratch in the norms",
    { rmsScratch: part(normsK, f32, 512) },
    "invalidArgument",
    "normsK",
    "rmsScratch",
  ),
  refused("token", "a probe of 8 bits", { ...probe, bits: 8, packing: 2 }, "unsupported", "rmsScratch", 8, 4),
  refused("token", "a probe of K and V", { ...probe, v }, "unsupported", "rmsScratch", "one stream"),
  {
    ...refused("token", "a probe without a scratch", {}, "invalidArgument", "rms_probe_enabled", 1, "rmsScratch"),
    poke: ({ u32 }) => {
      u32[48] = 1;
    },
  },
  {
    ...refused("token", "a scratch without a probe", probe, "invalidArgument", "rms_probe_enabled", 0, "rmsScratch"),
    poke: ({ u32 }) => {
      u32[48] = 0;
    },
  },
];

/** Refused, with nothing encoded or written. */
function check({ call, spoil, poke, status, says }: AbiCase): void {
  const before = buffers.map(({ bytes }) => bytes.slice());
  const result = calls[call](pass, argsOf(spoil), poke);
  const message = scene.lastError();
  expect([result, message]).toEqual([statusCodes[status], message]);
  for (const word of says) expect(message).toContain(String(word));
  expect(scene.describe(pass)).toEqual([]);
  expect(buffers.map(({ bytes }) => bytes)).toEqual(before);
}

testTable("refused: tensors", tensorCases, check);
testTable("refused: caches and positions", [...cacheCases, ...sourceCases], check);
testTable("refused: the probe", probeCases, check);

describe("formats", () => {
  // A source or result without room is refused after the format and before a kernel is compiled.
  const tooSmall = { k: { vectors: part(vectorsK, f32, 4) } };
  const trial = (call: CallName, spoil: Spoil) => calls[call](pass, argsOf({ ...spoil, ...tooSmall }));

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
            expect(scene.lastError()).toContain(
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

describe("nothing to do", () => {
  test.each([
    ["token", { cache: { nKvHeads: 0 } }],
    ["token", { cache: { headDim: 0 } }],
    ["tokens", { nTokens: 0 }],
    ["tokens", { cache: { nKvHeads: 0 } }],
    ["tokens", { cache: { headDim: 0 } }],
    ["decode", { nTokens: 0 }],
    ["decode", { cache: { nKvHeads: 0 } }],
    ["decode", { cache: { headDim: 0 } }],
  ] as const)("%s, %p: success without a dispatch", (call, spoil) => {
    expect(calls[call](pass, argsOf(spoil))).toBe(statusCodes.ok);
    expect(scene.describe(pass)).toEqual([]);
  });
});

test("no arguments, and no pass", () => {
  for (const send of [
    native.ma_hadamard_quantize_kv,
    native.ma_hadamard_quantize_kv_seq,
    native.ma_hadamard_dequantize_kv,
  ]) {
    expect(send(pass, null)).toBe(statusCodes.invalidArgument);
    expect(scene.lastError()).toContain("args");
  }
  for (const call of allCalls) expect(calls[call](0, argsOf({}))).toBe(statusCodes.invalidHandle);
});

test("the pass that refused all this takes and runs the valid calls", () => {
  const spoils: readonly Spoil[] = [{}, { v }, { cache: { isSliding: 1, position: 4 } }];
  for (const call of allCalls) {
    for (const spoil of spoils) {
      expect([calls[call](pass, argsOf(spoil)), scene.lastError()]).toEqual([statusCodes.ok, scene.lastError()]);
    }
  }
  expect(calls.token(pass, argsOf(probe))).toBe(statusCodes.ok);
  expect(scene.describe(pass).length).toBe(allCalls.length * spoils.length + 1);
  scene.commitAndWait(pass);
}, 60_000);
