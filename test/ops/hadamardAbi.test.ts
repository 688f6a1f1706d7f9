import { afterAll, describe, expect, test } from "bun:test";
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

/** Names of a stream's tensors in the C ABI. */
const vectorName = (call: CallName, stream: "K" | "V") => `${call === "decode" ? "out" : "src"}${stream}`;
/** Bytes of the head vectors that a call touches, from the start of their tensor. */
const vectorBytes = { token: 512, tokens: 2048, decode: 1536 } as const;

const { handle: stale } = scene.buffer(4096);
native.ma_buffer_release(stale);
const { handle: elsewhere } = otherScene.buffer(4096);

const tensorCases = allCalls.flatMap((call): readonly HadamardRefusal[] => {
  const bytes = vectorBytes[call];
  const [nameK, nameV] = [vectorName(call, "K"), vectorName(call, "V")];
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
      "packedK",
      319,
      320,
    ),
    refused(
      call,
      "norms too small",
      { k: { norms: { ...k.norms, lengthLow: 36 } } },
      "bufferTooSmall",
      "normsK",
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
      "packedV",
      319,
      320,
    ),
    refused(
      call,
      "V's norms too small",
      both({ norms: { ...v.norms, lengthLow: 36 } }),
      "bufferTooSmall",
      "normsV",
      36,
      40,
    ),
    refused(
      call,
      "packed beyond its buffer",
      { k: { packed: { ...k.packed, offsetLow: 4000 } } },
      "bufferTooSmall",
      "packedK",
      4096,
    ),
    refused(
      call,
      "packed that wraps around 2^64",
      { k: { packed: { ...k.packed, offsetLow: maxU32 - 3, offsetHigh: maxU32 } } },
      "bufferTooSmall",
      "packedK",
    ),
    refused(
      call,
      "norms inside an element",
      { k: { norms: { ...k.norms, offsetLow: 2 } } },
      "invalidArgument",
      "normsK",
      2,
      4,
    ),
    refused(call, "no vectors", { k: { vectors: tensorRecord(0, 0, 0, 0) } }, "invalidHandle", nameK),
    refused(call, "stale packed", { k: { packed: { ...k.packed, buffer: stale } } }, "invalidHandle", "packedK"),
    refused(
      call,
      "norms of another device",
      { k: { norms: { ...k.norms, buffer: elsewhere } } },
      "invalidHandle",
      "normsK",
    ),
    refused(
      call,
      "a dtype that is none",
      { k: { packed: { ...k.packed, dtype: 99 } } },
      "invalidArgument",
      "packedK",
      99,
    ),
    refused(call, "packed of i8", { k: { packed: { ...k.packed, dtype: i8 } } }, "unsupported", "packedK", "i8", "u8"),
    refused(call, "norms of f16", { k: { norms: { ...k.norms, dtype: f16 } } }, "unsupported", "normsK", "f16", "f32"),
    refused(call, "vectors of u8", { k: { vectors: { ...k.vectors, dtype: u8 } } }, "unsupported", nameK, "u8", "f32"),
    refused(call, "V without its norms", { v: { ...v, norms: undefined as never } }, "invalidArgument", "normsV"),
    refused(call, "V without its codes", { v: { ...v, packed: undefined as never } }, "invalidArgument", "packedV"),
    refused(call, "V's norms alone", { v: { norms: v.norms } }, "invalidArgument", nameV),
    refused(
      call,
      "codes in the vectors",
      { k: { packed: { ...k.packed, buffer: k.vectors.buffer } } },
      "invalidArgument",
      "packedK",
      nameK,
      "overlap",
    ),
    refused(
      call,
      "norms in the vectors",
      { k: { norms: { ...k.norms, buffer: k.vectors.buffer, offsetLow: bytes - 4 } } },
      "invalidArgument",
      "normsK",
      nameK,
      "overlap",
    ),
    refused(
      call,
      "V's vectors in K's norms",
      both({ vectors: { ...v.vectors, buffer: k.norms.buffer } }),
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
            both({ vectors: { ...v.vectors, dtype: f16 } }),
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
            { k: { packed: { ...k.packed, buffer: k.norms.buffer } } },
            "invalidArgument",
            "packedK",
            "normsK",
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

testTable("refused: tensors", tensorCases, abi.check);
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
