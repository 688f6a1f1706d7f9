/** Block tables whose slots a sequence cannot have: refused by every operation, not cut to 32 bits. */
import { afterAll, expect, test } from "bun:test";
import {
  Device,
  flashAttnDecode,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
  kvCacheAppend,
  type Pass,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

const pageTokens = 65_536;
const pages = device.tensor("bf16", [1, 1, pageTokens, 64]);
const tokens = device.tensor("bf16", [1, 1, 1, 64]);
const source = device.tensor("f32", [1, 1, 64]);
const packed = device.tensor("u8", [1, 1, pageTokens, 32]);
const norms = device.tensor("f32", [1, 1, pageTokens, 1]);

test.each<[name: string, encode: (pass: Pass, maxPages: number) => void]>([
  [
    "flashAttnDecode",
    (pass, maxPages) => {
      const out = device.tensor("bf16", tokens.shape);
      const blockTable = device.tensor("i32", [1, maxPages]);
      flashAttnDecode(pass, { q: tokens, k: pages, v: pages, out, seqLen: 1, blockTable });
    },
  ],
  [
    "flashAttnPrefill",
    (pass, maxPages) => {
      const out = device.tensor("bf16", tokens.shape);
      const blockTable = device.tensor("i32", [1, maxPages]);
      flashAttnPrefill(pass, { q: tokens, k: pages, v: pages, out, seqLenK: 1, blockTable });
    },
  ],
  [
    "kvCacheAppend",
    (pass, maxPages) =>
      kvCacheAppend(pass, { src: source, cache: pages, start: 0, blockTable: device.tensor("i32", [maxPages]) }),
  ],
  [
    "hadamardQuantizeKvSeq",
    (pass, maxPages) =>
      hadamardQuantizeKvSeq(pass, {
        ...{ src: source, packed, norms, bits: 4, writePosStart: 0 },
        blockTable: device.tensor("i32", [maxPages]),
      }),
  ],
])("%s refuses 2^31 slots and more", (_, encode) => {
  using pass = device.pass();
  for (const maxPages of [32_768, 65_536, 65_537]) {
    expectRefusal(() => encode(pass, maxPages), "overflow", "blockTable", maxPages * pageTokens, 0x7fff_ffff);
  }
  expect(pass.describe()).toEqual([]);
  encode(pass, 16_384);
  expect(pass.describe()).toHaveLength(1);
});
