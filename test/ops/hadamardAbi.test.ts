import { afterAll, describe, expect, test } from "bun:test";
import type { Block } from "../../src/ffi/block.ts";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import { structSizes } from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { expectOk } from "../helpers/abiRefusals.ts";
import { HadamardAbi, type HadamardRefusal, refused, type Spoil } from "../helpers/hadamardAbi.ts";
import { allCalls, type CallName, hadamardCalls, type StreamRecords } from "../helpers/hadamardCalls.ts";
import { testTable } from "../helpers/table.ts";

// TypeScript derives extents from shapes; a caller of the C ABI states them.

const abi = new HadamardAbi();
const otherScene = new NativeScene();
afterAll(() => otherScene.close());

const { scene, pass, k, v } = abi;
const { native } = scene;
const { f16, bf16, u8, i8 } = dtypeCodes;
const maxU32 = 2 ** 32 - 1;

/** 32-bit words of derived fields: six tensors stand before the parameters of a result, seven before those of a token. */
const tensorWords = structSizes.MATensor / 4;
const outDtypeWord = 6 * tensorWords + 8;
const probeWord = 7 * tensorWords + 6;
/** Behind eight tensors. */
const bitsOfVWord = 8 * tensorWords + 18;

/** What the package calls the head vectors of a call. */
const vectorName = (call: CallName) => (call === "decode" ? "out" : "src");
/** Bytes of the head vectors that a call touches, from the start of their tensor. */
const vectorBytes = { token: 512, tokens: 2048, decode: 1536 } as const;

const { handle: stale } = scene.buffer(4096);
native.ma_buffer_release(stale);
const { handle: elsewhere } = otherScene.buffer(4096);

const tensorCases = allCalls.flatMap((call): readonly HadamardRefusal[] => {
  const bytes = vectorBytes[call];
  const nameK = vectorName(call);
  const nameV = `v.${nameK}`;
  const both = (spoil: Partial<StreamRecords>) => ({ v: { ...v, ...spoil } });
  return [
    refused(
      call,
      "vectors too small",
      { k: { vectors: { ...k.vectors, lengthLow: bytes - 4 } } },
      "bufferTooSmall",
      nameK,
      bytes - 4,
      bytes,
    ),
    refused(
      call,
      "packed too small",
      { k: { packed: { ...k.packed, lengthLow: 319 } } },
      "bufferTooSmall",
      "packed",
      319,
      320,
    ),
    refused(
      call,
      "norms too small",
      { k: { norms: { ...k.norms, lengthLow: 36 } } },
      "bufferTooSmall",
      "norms",
      36,
      40,
    ),
    refused(
      call,
      "V's vectors too small",
      both({ vectors: { ...v.vectors, lengthLow: bytes - 4 } }),
      "bufferTooSmall",
      nameV,
      bytes,
    ),
    refused(
      call,
      "V's packed too small",
      both({ packed: { ...v.packed, lengthLow: 319 } }),
      "bufferTooSmall",
      "v.packed",
      319,
      320,
    ),
    refused(
      call,
      "V's norms too small",
      both({ norms: { ...v.norms, lengthLow: 36 } }),
      "bufferTooSmall",
      "v.norms",
      36,
      40,
    ),
    refused(
      call,
      "packed beyond its buffer",
      { k: { packed: { ...k.packed, offsetLow: 4000 } } },
      "bufferTooSmall",
      "packed",
      4096,
    ),
    refused(
      call,
      "packed that wraps around 2^64",
      { k: { packed: { ...k.packed, offsetLow: maxU32 - 3, offsetHigh: maxU32 } } },
      "bufferTooSmall",
      "packed",
    ),
    refused(
      call,
      "norms inside an element",
      { k: { norms: { ...k.norms, offsetLow: 2 } } },
      "invalidArgument",
      "norms",
      2,
      4,
    ),
    refused(call, "no vectors", { k: { vectors: tensorRecord(0, 0, 0, 0) } }, "invalidHandle", nameK),
    refused(call, "stale packed", { k: { packed: { ...k.packed, buffer: stale } } }, "invalidHandle", "packed"),
    refused(
      call,
      "norms of another device",
      { k: { norms: { ...k.norms, buffer: elsewhere } } },
      "invalidHandle",
      "norms",
    ),
    refused(
      call,
      "a dtype that is none",
      { k: { packed: { ...k.packed, dtype: 99 } } },
      "invalidArgument",
      "packed",
      99,
    ),
    refused(call, "packed of i8", { k: { packed: { ...k.packed, dtype: i8 } } }, "unsupported", "packed", "i8", "u8"),
    refused(call, "norms of f16", { k: { norms: { ...k.norms, dtype: f16 } } }, "unsupported", "norms", "f16", "f32"),
    refused(call, "vectors of u8", { k: { vectors: { ...k.vectors, dtype: u8 } } }, "unsupported", nameK, "u8", "f32"),
    refused(
      call,
      "V of another type",
      both({ vectors: { ...v.vectors, dtype: f16 } }),
      "unsupported",
      nameV,
      "f16",
      `k.${nameK}`,
      "f32",
    ),
    refused(call, "V without its norms", { v: { ...v, norms: undefined as never } }, "invalidArgument", "v.norms"),
    refused(call, "V without its codes", { v: { ...v, packed: undefined as never } }, "invalidArgument", "v.packed"),
    refused(call, "V's norms alone", { v: { norms: v.norms } }, "invalidArgument", nameV),
    refused(
      call,
      "codes in the vectors",
      { k: { packed: { ...k.packed, buffer: k.vectors.buffer } } },
      "invalidArgument",
      call === "decode" ? "packed" : nameK,
      call === "decode" ? nameK : "packed",
      "overlap",
    ),
    refused(
      call,
      "norms in the vectors",
      { k: { norms: { ...k.norms, buffer: k.vectors.buffer, offsetLow: bytes - 4 } } },
      "invalidArgument",
      call === "decode" ? "norms" : nameK,
      call === "decode" ? nameK : "norms",
      "overlap",
    ),
    refused(
      call,
      "V's vectors in K's norms",
      both({ vectors: { ...v.vectors, buffer: k.norms.buffer } }),
      "invalidArgument",
      "k.norms",
      nameV,
      "overlap",
    ),
    ...(call === "decode"
      ? [
          refused(call, "one result", both({ vectors: k.vectors }), "invalidArgument", "k.out", "v.out", "overlap"),
          {
            ...refused(call, "out_dtype of another type", {}, "invalidArgument", "out_dtype", bf16, "out", 1),
            poke: ({ u32 }: Block) => {
              u32[outDtypeWord] = bf16;
            },
          },
        ]
      : [
          refused(call, "one packed", both({ packed: k.packed }), "invalidArgument", "k.packed", "v.packed", "overlap"),
          refused(
            call,
            "codes in the norms",
            { k: { packed: { ...k.packed, buffer: k.norms.buffer } } },
            "invalidArgument",
            "packed",
            "norms",
            "overlap",
          ),
        ]),
  ];
});

const probe = { rmsScratch: abi.rmsScratch };
const probeCases: readonly HadamardRefusal[] = [
  refused(
    "token",
    "scratch too small",
    { rmsScratch: { ...abi.rmsScratch, lengthLow: 508 } },
    "bufferTooSmall",
    "rmsScratch",
    508,
    512,
  ),
  refused(
    "token",
    "scratch of u8",
    { rmsScratch: { ...abi.rmsScratch, dtype: u8 } },
    "unsupported",
    "rmsScratch",
    "u8",
    "f32",
  ),
  refused(
    "token",
    "scratch in the norms",
    { rmsScratch: { ...abi.rmsScratch, buffer: k.norms.buffer } },
    "invalidArgument",
    "norms",
    "rmsScratch",
  ),
  refused("token", "a probe of 8 bits", { ...probe, bits: 8, packing: 2 }, "unsupported", "rmsScratch", 8, 4),
  refused("token", "a probe of K and V", { ...probe, v }, "unsupported", "rmsScratch", "one stream"),
  ...[16, 3].map((value) => ({
    ...refused("token", `a probe of ${value} without a scratch`, {}, "invalidArgument", "rms_probe_enabled", value, 0),
    poke: ({ u32 }: Block) => {
      u32[probeWord] = value;
    },
  })),
  {
    ...refused("token", "another probe than the scratch is for", probe, "invalidArgument", "rms_probe_enabled", 16, 1),
    poke: ({ u32 }) => {
      u32[probeWord] = 16;
    },
  },
  refused("token", "7 coordinates", { ...probe, rmsCoordinates: 7 }, "invalidArgument", "rmsCoordinates", 7, 16),
];

const bytesOfV = { v, bitsV: 8, packingV: packingCodes.byte };
const formatCases: readonly HadamardRefusal[] = [
  refused("tokens", "a packing of V that is none", { ...bytesOfV, packingV: 4 }, "unsupported", "v.bits", 8, 4),
  refused("tokens", "V of 7 bits", { ...bytesOfV, bitsV: 7 }, "unsupported", "v.bits", 7, "5, 6, 8"),
  refused("tokens", "V's packing without bits", { ...bytesOfV, bitsV: 0 }, "unsupported", "v.bits", 0, 2),
  refused("tokens", "V's bits without a packing", { ...bytesOfV, packingV: 0 }, "unsupported", "v.bits", 8, 0),
  refused("tokens", "a format of V without V", { ...bytesOfV, v: {} }, "invalidArgument", "v.packing", 2, 8, "v.src"),
  refused("tokens", "V's codes too small for its format", bytesOfV, "bufferTooSmall", "v.packed", 320, 640),
  {
    ...refused("tokens", "other bits of V than it has", { v }, "invalidArgument", "codebook_bits_v", 8, 4),
    poke: ({ u32 }) => {
      u32[bitsOfVWord] = 8;
    },
  },
];

testTable("refused: tensors", tensorCases, abi.check);
testTable("refused: formats of V", formatCases, abi.check);
testTable("refused: the probe", probeCases, abi.check);

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
    expect(abi.send(call, spoil)).toBe(statusCodes.ok);
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
  for (const call of allCalls) expect(hadamardCalls[call](0, abi.args({}))).toBe(statusCodes.invalidHandle);
});

test("the pass that refused all this takes and runs the valid calls", () => {
  const spoils: readonly Spoil[] = [{}, { v }, { cache: { isSliding: 1, position: 4 } }];
  for (const call of allCalls) {
    for (const spoil of spoils) expectOk(scene, abi.send(call, spoil));
  }
  expectOk(scene, abi.send("token", probe));
  expect(scene.describe(pass).length).toBe(allCalls.length * spoils.length + 1);
  scene.commitAndWait(pass);
}, 60_000);
