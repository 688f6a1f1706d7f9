import { afterAll, expect, test } from "bun:test";
import { Device, dequantizeKv, hadamardQuantizeKvSeq, kvCacheCopyHeadMajor, type Pass } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

// Heads and tokens exchanged: the error says which order was given. (kvCacheCopySeq's test has its own.)

const device = Device.open();
afterAll(() => device.dispose());

const cache = device.tensor("bf16", [2, 32, 64]);
const quantized = {
  packed: device.tensor("u8", [2, 32, 32]),
  norms: device.tensor("f32", [2, 32, 1]),
  bits: 4,
} as const;

const calls: readonly (readonly [string, "src" | "out", readonly number[], string, (pass: Pass) => void])[] = [
  [
    "kvCacheCopyHeadMajor",
    "src",
    [16, 2, 64],
    "which looks token-major for a cache of 2 heads; kvCacheCopySeq takes that order",
    (pass) => kvCacheCopyHeadMajor(pass, { src: device.tensor("bf16", [16, 2, 64]), cache, seqPosStart: 0 }),
  ],
  [
    "hadamardQuantizeKvSeq",
    "src",
    [2, 16, 64],
    "expected token-major [nSrcTokens, nKvHeads, headDim]",
    (pass) => hadamardQuantizeKvSeq(pass, { ...quantized, src: device.tensor("f32", [2, 16, 64]), writePosStart: 0 }),
  ],
  [
    "dequantizeKv",
    "out",
    [16, 2, 64],
    "which looks token-major for a cache of 2 heads",
    (pass) => dequantizeKv(pass, { ...quantized, out: device.tensor("f32", [16, 2, 64]) }),
  ],
];

test.each(calls)("%s: %s of the other order", (_, argument, shape, says, call) => {
  using pass = device.pass();
  expectRefusal(() => call(pass), "invalid-argument", argument, `[${shape}]`, says);
  expect(pass.describe()).toEqual([]);
});
