import { afterAll, describe, expect, test } from "bun:test";
import type { MATensor } from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { type AbiRefusal, expectOk, expectRefused } from "../helpers/abiRefusals.ts";
import {
  type CopyCall,
  copyHeadMajor,
  copyRows,
  copySeq,
  copyToken,
  type HeadMajorArgs,
  type RowArgs,
  type SeqArgs,
  type StreamArgs,
  type TokenArgs,
} from "../helpers/copyCalls.ts";
import { testTable } from "../helpers/table.ts";

// TypeScript derives capacities and extents from shapes; a caller of the C ABI states them.

const scene = new NativeScene();
const otherScene = new NativeScene();
afterAll(() => {
  scene.close();
  otherScene.close();
});

const { native } = scene;
const source = scene.buffer(4096);
const target = scene.buffer(4096);
const sourceV = scene.buffer(4096);
const targetV = scene.buffer(4096);
const buffers = [source, target, sourceV, targetV];
for (const [index, { bytes }] of buffers.entries()) bytes.fill(17 * (index + 1));

const { f32, f16, bf16, u8 } = dtypeCodes;
/** A type of function constants, which no tensor has. */
const i16 = 9;
const maxU32 = 2 ** 32 - 1;

/** The first `elements` of a buffer. */
const part = ({ handle }: { handle: number }, dtype: number, elements: number): MATensor =>
  tensorRecord(handle, dtype, 0, elements * (dtype === f32 ? 4 : 2));

function rows(spoil: Partial<RowArgs> = {}): CopyCall {
  const params = { writePos: 1, rowSize: 8, nNew: 4, cacheCap: 6, isSliding: 0 };
  return copyRows({ src: part(source, f32, 32), cache: part(target, f32, 48), ...params, ...spoil });
}

const noV = { srcV: undefined, cacheV: undefined };

function token(spoil: Partial<TokenArgs> = {}): CopyCall {
  const params = { nHeads: 2, headDim: 8, capacity: 5, seqPos: 4, isSliding: 0, batch: 1 };
  return copyToken({ srcK: part(source, f32, 16), cacheK: part(target, f16, 80), ...noV, ...params, ...spoil });
}

const extents = { nHeads: 2, headDim: 8, capacity: 5, isSliding: 1, batch: 1 };
const run = { ...extents, seqPosStart: 4, nTokens: 3, srcTokOffset: 1 };

function tokens(spoil: Partial<SeqArgs> = {}): CopyCall {
  return copySeq({
    srcK: part(source, f32, 64),
    cacheK: part(target, f16, 80),
    ...noV,
    ...run,
    nSrcTokens: 4,
    ...spoil,
  });
}

function headMajor(spoil: Partial<HeadMajorArgs> = {}): CopyCall {
  const tensors = { src: part(source, bf16, 64), cache: part(target, bf16, 80) };
  return copyHeadMajor({ ...tensors, ...run, srcSeqLen: 4, ...spoil });
}

interface AbiCase extends AbiRefusal {
  readonly call: CopyCall;
}

function refused(
  name: string,
  call: CopyCall,
  status: AbiCase["status"],
  argument: string,
  ...says: AbiCase["says"]
): AbiCase {
  return { name, call, status, argument, says };
}

const pass = scene.pass();
const stale = scene.buffer(4096);
native.ma_buffer_release(stale.handle);

const rowCases: readonly AbiCase[] = [
  refused("source too small by one element", rows({ src: part(source, f32, 31) }), "bufferTooSmall", "src", 124, 128),
  refused(
    "cache too small by one element",
    rows({ cache: part(target, f32, 47) }),
    "bufferTooSmall",
    "cache",
    188,
    192,
  ),
  refused("cache too small for its unused end", rows({ cacheCap: 1000 }), "bufferTooSmall", "cache", 192, 32000),
  refused(
    "source range beyond its buffer",
    rows({ src: tensorRecord(source.handle, f32, 4000, 128) }),
    "bufferTooSmall",
    "src",
    4096,
  ),
  refused(
    "source range that wraps around 2^64",
    rows({
      src: { ...tensorRecord(source.handle, f32, 0, 0), offsetLow: maxU32 - 3, offsetHigh: maxU32, lengthLow: 256 },
    }),
    "bufferTooSmall",
    "src",
    4096,
  ),
  refused(
    "source offset inside an element",
    rows({ src: tensorRecord(source.handle, f32, 2, 128) }),
    "invalidArgument",
    "src",
    2,
    4,
  ),
  refused("linear overflow", rows({ writePos: 3 }), "overflow", "writePos", 3, 4, 6),
  refused("position beyond 2^32", rows({ writePos: maxU32 }), "overflow", "writePos", maxU32, 4),
  refused("ring too small", rows({ isSliding: 1, cacheCap: 3 }), "overflow", "nNew", 4, 3),
  refused("no slot", rows({ cacheCap: 0 }), "invalidArgument", "cache", "cacheCap", 0),
  refused("ring of no slot", rows({ cacheCap: 0, isSliding: 1 }), "invalidArgument", "cache", "cacheCap", 0),
  refused(
    "a source of 2^66 bytes",
    rows({ rowSize: maxU32, nNew: maxU32, cacheCap: maxU32, writePos: 0 }),
    "overflow",
    "src",
    "rowSize",
    maxU32,
  ),
  refused(
    "a source of 2^64 bytes",
    rows({ rowSize: 2 ** 31, nNew: 2 ** 31, cacheCap: 2 ** 31, writePos: 0 }),
    "overflow",
    "src",
    "nNew",
    2 ** 31,
  ),
  refused(
    "a source of 2^62 bytes",
    rows({ rowSize: 2 ** 30, nNew: 2 ** 30, cacheCap: 2 ** 31, writePos: 0 }),
    "bufferTooSmall",
    "src",
    `${2n ** 62n}`,
  ),
  refused(
    "a cache of 2^65 bytes",
    rows({ rowSize: 2 ** 31, nNew: 1, cacheCap: maxU32, writePos: 0 }),
    "bufferTooSmall",
    "src",
    2 ** 33,
  ),
  refused("u8", rows({ src: part(source, u8, 32), cache: part(target, u8, 48) }), "unsupported", "src", "u8"),
  refused("a dtype that is none", rows({ src: part(source, 99, 64) }), "invalidArgument", "src", 99),
  refused("i16", rows({ src: part(source, i16, 64) }), "unsupported", "src", "i16", "f32"),
  refused("a dtype of zero", rows({ src: part(source, 0, 64) }), "invalidArgument", "src"),
  refused("no source", rows({ src: tensorRecord(0, 0, 0, 0) }), "invalidHandle", "src"),
  refused("a stale cache", rows({ cache: part(stale, f32, 48) }), "invalidHandle", "cache"),
  refused("a pass as cache", rows({ cache: part({ handle: pass }, f32, 48) }), "invalidHandle", "cache"),
  refused(
    "a cache of another device",
    rows({ cache: part(otherScene.buffer(512), f32, 48) }),
    "invalidHandle",
    "cache",
  ),
  refused(
    "source in the cache",
    rows({ src: tensorRecord(target.handle, f32, 128, 128) }),
    "invalidArgument",
    "cache",
    "src",
    "overlap",
  ),
];

const v = { srcV: part(sourceV, f32, 16), cacheV: part(targetV, f16, 80) };

const tokenCases: readonly AbiCase[] = [
  refused("source too small by one element", token({ srcK: part(source, f32, 15) }), "bufferTooSmall", "src", 60, 64),
  refused(
    "cache too small by one element",
    token({ cacheK: part(target, f16, 79) }),
    "bufferTooSmall",
    "cache",
    158,
    160,
  ),
  refused("V's source too small", token({ ...v, srcV: part(sourceV, f32, 15) }), "bufferTooSmall", "v.src", 60, 64),
  refused(
    "V's cache too small",
    token({ ...v, cacheV: part(targetV, f16, 79) }),
    "bufferTooSmall",
    "v.cache",
    158,
    160,
  ),
  refused("slot beyond the cache", token({ seqPos: 5 }), "overflow", "seqPos", 5, "isSliding"),
  refused("a flag of 2", token({ isSliding: 2 }), "invalidArgument", "isSliding", 2),
  refused("no batch", token({ batch: 0 }), "invalidArgument", "batch", 0),
  refused("2^32 heads in all", token({ batch: 2 ** 31 }), "overflow", "batch", 2 ** 31, "nHeads", 2),
  refused("a source of one batch for two", token({ batch: 2 }), "bufferTooSmall", "src", 64, 128, "batch", 2),
  refused(
    "a cache of one batch for two",
    token({ batch: 2, srcK: part(source, f32, 32) }),
    "bufferTooSmall",
    "cache",
    160,
    320,
  ),
  refused("a ring of no slot", token({ capacity: 0, isSliding: 1 }), "invalidArgument", "cache", "capacity", 0),
  refused("no slot", token({ capacity: 0, seqPos: 0 }), "invalidArgument", "cache", "capacity", 0),
  refused(
    "2^96 elements",
    token({ nHeads: maxU32, headDim: maxU32, capacity: maxU32, seqPos: 0 }),
    "overflow",
    "src",
    maxU32,
  ),
  refused(
    "2^64 elements",
    token({ nHeads: 2 ** 31, headDim: 2 ** 31, capacity: 4, seqPos: 0 }),
    "overflow",
    "src",
    2 ** 31,
  ),
  refused("V's source without its cache", token({ srcV: v.srcV }), "invalidArgument", "v.cache"),
  refused("V's cache without its source", token({ cacheV: v.cacheV }), "invalidArgument", "v.src"),
  refused("V of another dtype", token({ ...v, cacheV: part(targetV, f32, 80) }), "unsupported", "v.cache", "f32"),
  refused(
    "one cache for K and V",
    token({ ...v, cacheV: part(target, f16, 80) }),
    "invalidArgument",
    "k.cache",
    "v.cache",
    "overlap",
  ),
  refused(
    "bf16 to f16",
    token({ srcK: part(source, bf16, 16), cacheK: part(target, f16, 80) }),
    "unsupported",
    "src",
    "bf16 to f16",
    "bf16 to bf16",
  ),
];

const seqCases: readonly AbiCase[] = [
  refused(
    "source too small by one element",
    tokens({ srcK: part(source, f32, 63) }),
    "bufferTooSmall",
    "src",
    252,
    256,
  ),
  refused(
    "cache too small by one element",
    tokens({ cacheK: part(target, f16, 79) }),
    "bufferTooSmall",
    "cache",
    158,
    160,
  ),
  refused(
    "V's source too small",
    tokens(dualTokens({ srcV: part(sourceV, f32, 63) })),
    "bufferTooSmall",
    "v.src",
    252,
    256,
  ),
  refused(
    "V's cache too small",
    tokens(dualTokens({ cacheV: part(targetV, f16, 79) })),
    "bufferTooSmall",
    "v.cache",
    158,
  ),
  refused("ring too small", tokens({ capacity: 2 }), "overflow", "nTokens", 3, 2),
  refused("beyond a linear cache", tokens({ isSliding: 0 }), "overflow", "seqPosStart", 4, 3, 5, "isSliding"),
  refused("a flag of 2", tokens({ isSliding: 2 }), "invalidArgument", "isSliding", 2),
  refused("no batch", tokens({ batch: 0 }), "invalidArgument", "batch", 0),
  refused("2^32 heads in all", tokens({ batch: 2 ** 31 }), "overflow", "batch", 2 ** 31, "nHeads", 2),
  refused("a source of one batch for two", tokens({ batch: 2 }), "bufferTooSmall", "src", 256, 512, "batch", 2),
  refused("tokens beyond the source", tokens({ nSrcTokens: 3 }), "bufferTooSmall", "srcTokOffset", 1, 3, "nSrcTokens"),
  refused("no slot", tokens({ capacity: 0 }), "invalidArgument", "cache", "capacity", 0),
  refused("position beyond 2^32", tokens({ seqPosStart: maxU32 }), "overflow", "seqPosStart", maxU32, 3),
  refused(
    "source position beyond 2^32",
    tokens({ srcTokOffset: maxU32 }),
    "bufferTooSmall",
    "srcTokOffset",
    maxU32,
    3,
    4,
  ),
  refused("2^96 elements", tokens({ nHeads: maxU32, headDim: maxU32, capacity: maxU32 }), "overflow", "src", maxU32),
  refused(
    "f16 to f32",
    tokens({ srcK: part(source, f16, 64), cacheK: part(target, f32, 80) }),
    "unsupported",
    "src",
    "f16",
    "f32",
  ),
];

function dualTokens(spoil: Partial<StreamArgs>): Partial<StreamArgs> {
  return { srcV: part(sourceV, f32, 64), cacheV: part(targetV, f16, 80), ...spoil };
}

const headMajorCases: readonly AbiCase[] = [
  refused(
    "source too small by one element",
    headMajor({ src: part(source, bf16, 63) }),
    "bufferTooSmall",
    "src",
    126,
    128,
  ),
  refused(
    "cache too small by one element",
    headMajor({ cache: part(target, bf16, 79) }),
    "bufferTooSmall",
    "cache",
    158,
  ),
  refused("tokens beyond the source", headMajor({ srcTokOffset: 2 }), "bufferTooSmall", "srcTokOffset", 2, 3, 4),
  refused("ring too small", headMajor({ capacity: 2 }), "overflow", "nTokens", 3, 2),
  refused("beyond a linear cache", headMajor({ isSliding: 0 }), "overflow", "seqPosStart", 4, 3, 5, "isSliding"),
  refused("a flag of 2", headMajor({ isSliding: 2 }), "invalidArgument", "isSliding", 2),
  refused("no batch", headMajor({ batch: 0 }), "invalidArgument", "batch", 0),
  refused("2^32 heads in all", headMajor({ batch: 2 ** 31 }), "overflow", "batch", 2 ** 31, "nHeads", 2),
  refused("a source of one batch for two", headMajor({ batch: 2 }), "bufferTooSmall", "src", 128, 256, "batch", 2),
  refused(
    "a cache of one batch for two",
    headMajor({ batch: 2, src: part(source, bf16, 128) }),
    "bufferTooSmall",
    "cache",
    160,
    320,
  ),
  refused("no slot", headMajor({ capacity: 0 }), "invalidArgument", "cache", "capacity", 0),
  refused(
    "a source of 2^97 bytes",
    headMajor({ nHeads: maxU32, headDim: maxU32, srcSeqLen: maxU32 }),
    "overflow",
    "src",
    maxU32,
  ),
  refused(
    "f32",
    headMajor({ src: part(source, f32, 64), cache: part(target, f32, 80) }),
    "unsupported",
    "src",
    "f32",
    "bf16",
  ),
];

const check = (refusal: AbiCase) => expectRefused(scene, pass, buffers, refusal, () => refusal.call(pass));

testTable("ma_kv_cache_copy refuses", rowCases, check);
testTable("ma_kv_cache_copy_batch refuses", tokenCases, check);
testTable("ma_kv_cache_copy_seq refuses", seqCases, check);
testTable("ma_kv_cache_copy_head_major refuses", headMajorCases, check);

const nothing: readonly (readonly [string, CopyCall])[] = [
  ["rows: no token", rows({ nNew: 0 })],
  ["rows: no element", rows({ rowSize: 0 })],
  ["one token: no head", token({ nHeads: 0 })],
  ["one token: no element", token({ headDim: 0 })],
  ["tokens: none", tokens({ nTokens: 0 })],
  ["tokens: no head", tokens({ nHeads: 0 })],
  ["tokens: no element", tokens({ headDim: 0 })],
  ["head-major: no token", headMajor({ nTokens: 0 })],
  ["head-major: no head", headMajor({ nHeads: 0 })],
  ["head-major: no element", headMajor({ headDim: 0 })],
];

describe("nothing to copy", () => {
  test.each(nothing)("%s: success without a dispatch", (_, call) => {
    expect(call(pass)).toBe(statusCodes.ok);
    expect(scene.describe(pass)).toEqual([]);
  });
});

test("the pass that refused all this takes and runs the valid calls", () => {
  const calls = [rows(), token(), token(v), tokens(), tokens(dualTokens({})), headMajor()];
  for (const call of calls) expectOk(scene, call(pass));
  expect(scene.describe(pass).length).toBe(calls.length);
  scene.commitAndWait(pass);
});
