import { expect, test } from "bun:test";
import {
  buildCausalMask,
  classifyMaskTiles,
  dequantizeKv,
  flashAttnPrefill,
  hadamardQuantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type Pass,
  type Tensor,
} from "../../src/index.ts";

// Held by the compiler: `tsc` fails where a line that is expected to be an
// error is none. Nothing here is called.

type Tensors = { readonly [T in "f32" | "f16" | "bf16" | "u8" | "i8" | "u32" | "i32" | "bool"]: Tensor<T> };

/** Calls that compile, and calls that must not. */
export const checked = {
  attention(pass: Pass, { bf16, f16, f32, u8, bool }: Tensors) {
    flashAttnPrefill(pass, { q: bf16, k: bf16, v: bf16, out: bf16, mask: bool });
    flashAttnPrefill(pass, { q: f16, k: f16, v: f16, out: f16, mask: f16 });
    // @ts-expect-error: no kernel reads f32
    flashAttnPrefill(pass, { q: f32, k: bf16, v: bf16, out: bf16 });
    // @ts-expect-error: nor f32 keys
    flashAttnPrefill(pass, { q: bf16, k: f32, v: bf16, out: bf16 });
    // @ts-expect-error: nor u8 values
    flashAttnPrefill(pass, { q: bf16, k: bf16, v: u8, out: bf16 });
    // @ts-expect-error: no kernel writes u8
    flashAttnPrefill(pass, { q: bf16, k: bf16, v: bf16, out: u8 });
    // @ts-expect-error: a mask of u8 is none of bool
    flashAttnPrefill(pass, { q: bf16, k: bf16, v: bf16, out: bf16, mask: u8 });
    // @ts-expect-error: no such option
    flashAttnPrefill(pass, { q: bf16, k: bf16, v: bf16, out: bf16, isCausal: true });
  },
  masks(pass: Pass, { bool, f32, u8 }: Tensors) {
    buildCausalMask(pass, { mask: bool });
    // @ts-expect-error: no mask is f32
    buildCausalMask(pass, { mask: f32 });
    // @ts-expect-error: nor u8
    classifyMaskTiles(pass, { mask: u8, headDim: 64 });
  },
  copies(pass: Pass, { f32, f16, bf16, u8, bool, i32 }: Tensors) {
    kvCacheCopy(pass, { src: f32, cache: f32, writePos: 0 });
    kvCacheCopyBatch(pass, { src: f32, cache: f16, seqPos: 0, isSliding: true });
    kvCacheCopySeq(pass, { k: { src: bf16, cache: f32 }, v: { src: bf16, cache: f32 }, seqPosStart: 0 });
    kvCacheCopyHeadMajor(pass, { src: bf16, cache: bf16, seqPosStart: 0 });
    // @ts-expect-error: no copy moves u8
    kvCacheCopy(pass, { src: u8, cache: u8, writePos: 0 });
    // @ts-expect-error: nor bool
    kvCacheCopyBatch(pass, { src: bool, cache: f16, seqPos: 0 });
    // @ts-expect-error: nor to i32, inside v
    kvCacheCopySeq(pass, { k: { src: f32, cache: f32 }, v: { src: f32, cache: i32 }, seqPosStart: 0 });
    // @ts-expect-error: head-major copies are bf16
    kvCacheCopyHeadMajor(pass, { src: f16, cache: f16, seqPosStart: 0 });
    // @ts-expect-error: K without V
    kvCacheCopySeq(pass, { k: { src: f32, cache: f32 }, seqPosStart: 0 });
    // @ts-expect-error: a stream beside K and V
    kvCacheCopyBatch(pass, { k: { src: f32, cache: f32 }, v: { src: f32, cache: f32 }, src: f32, seqPos: 0 });
  },
  quantized(pass: Pass, { f32, f16, bf16, u8, i8 }: Tensors) {
    hadamardQuantizeKv(pass, { src: f32, packed: u8, norms: f32, bits: 4, writePos: 0, rmsScratch: f32 });
    dequantizeKv(pass, { packed: u8, norms: f32, out: bf16, bits: 2 });
    // @ts-expect-error: codes are u8
    hadamardQuantizeKv(pass, { src: f32, packed: f32, norms: f32, bits: 4, writePos: 0 });
    // @ts-expect-error: not i8
    hadamardQuantizeKvSeq(pass, { src: f32, packed: i8, norms: f32, bits: 4, writePosStart: 0 });
    // @ts-expect-error: norms are f32
    dequantizeKv(pass, { packed: u8, norms: f16, out: bf16, bits: 2 });
    hadamardQuantizeKvSeq(pass, { src: bf16, packed: u8, norms: f32, bits: 4, writePosStart: 0 });
    const [k, v] = [
      { src: f16, packed: u8, norms: f32 },
      { src: f16, packed: u8, norms: f32 },
    ];
    hadamardQuantizeKvSeq(pass, { k: { ...k, bits: 8 }, v, bits: 4, writePosStart: 0 });
    hadamardQuantizeKvSeq(pass, { k: { ...k, bits: 5, packing: "byte" }, v: { ...v, bits: 4 }, writePosStart: 0 });
    // @ts-expect-error: V has no format
    hadamardQuantizeKvSeq(pass, { k: { ...k, bits: 8 }, v, writePosStart: 0 });
    // @ts-expect-error: nor has a stream alone
    hadamardQuantizeKvSeq(pass, { ...k, writePosStart: 0 });
    // @ts-expect-error: no codebook has 7 bits
    hadamardQuantizeKvSeq(pass, { k: { ...k, bits: 7 }, v, bits: 4, writePosStart: 0 });
    // @ts-expect-error: K and V of one token have one format
    hadamardQuantizeKv(pass, { k: { ...k, bits: 8 }, v, bits: 4, writePos: 0 });
    // @ts-expect-error: no source is u8
    hadamardQuantizeKvSeq(pass, { src: u8, packed: u8, norms: f32, bits: 4, writePosStart: 0 });
    // @ts-expect-error: no result is u8
    dequantizeKv(pass, { packed: u8, norms: f32, out: u8, bits: 2 });
    // @ts-expect-error: the probe is f32
    hadamardQuantizeKv(pass, { src: f32, packed: u8, norms: f32, bits: 4, writePos: 0, rmsScratch: f16 });
    // @ts-expect-error: no codebook has 7 bits
    dequantizeKv(pass, { packed: u8, norms: f32, out: f32, bits: 7 });
  },
};

test("the calls that compile and those that must not stand here", () => {
  expect(Object.keys(checked)).toEqual(["attention", "masks", "copies", "quantized"]);
});
