/**
 * A caller of the C ABI without the package's loader, which names arguments:
 * prints what the library says of refused calls, as JSON. `bun failure-child.ts [NAMES]`.
 */

import { dlopen } from "bun:ffi";
import { join } from "node:path";
import { Block } from "../../src/ffi/block.ts";
import { dtypeCodes, failureCodes, packingCodes } from "../../src/ffi/generated/codes.ts";
import {
  packMAFlashAttnPrefillArgs,
  packMAHadamardQuantizeKvArgs,
  packMAKvCacheCopySeqArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { symbols } from "../../src/ffi/generated/symbols.ts";
import { libraryFile } from "../../src/ffi/platformPackage.ts";
import { noAttentionOptions } from "../helpers/abi.ts";

const { symbols: native } = dlopen(join(import.meta.dir, "../../build/lib", libraryFile), symbols);
const [names] = process.argv.slice(2);
if (names !== undefined && native.ma_name_arguments(new TextEncoder().encode(`${names}\0`)) !== 0) process.exit(1);

const out = new Block(16);
function take(status: number): number {
  if (status !== 0) throw new Error(`status ${status}`);
  return out.u32[0] as number;
}
const device = take(native.ma_device_open(out.bytes));
const pass = take(native.ma_pass_create(device, 0, out.bytes));

/** A tensor at the start of a buffer of its own. */
function tensor(dtype: keyof typeof dtypeCodes, length: number) {
  const buffer = take(native.ma_buffer_create(device, 65536n, 0, out.bytes, out.bytes.subarray(8)));
  return { buffer, dtype: dtypeCodes[dtype], offsetLow: 0, offsetHigh: 0, lengthLow: length, lengthHigh: 0 };
}

const failures: Record<string, { argument: string; message: string }> = {};
function refuse(name: string, status: number): void {
  if (status === 0) throw new Error(`${name} was not refused`);
  const part = (code: number) => {
    const text = new Block(4096);
    native.ma_last_error(code, text.bytes, 4096);
    return text.getString(0, 4096);
  };
  failures[name] = { argument: part(failureCodes.argument), message: part(failureCodes.message) };
}

const source = () => tensor("f32", 64);
const cache = () => tensor("f32", 256);
const short = () => tensor("f32", 252);
type Tensor = ReturnType<typeof tensor>;

function copy(cacheK: Tensor, v: { srcV: Tensor; cacheV: Tensor } | undefined, seqPosStart = 0): number {
  const block = new Block(structSizes.MAKvCacheCopySeqArgs);
  const params = { nHeads: 2, headDim: 8, capacity: 4, seqPosStart, nTokens: 1, srcTokOffset: 0, nSrcTokens: 1 };
  const { srcV, cacheV } = v ?? { srcV: undefined, cacheV: undefined };
  packMAKvCacheCopySeqArgs(block, 0, { srcK: source(), cacheK, srcV, cacheV, params, isSliding: 0, batch: 1 });
  return native.ma_kv_cache_copy_seq(pass, block.bytes);
}

refuse("alone", copy(short(), undefined));
refuse("withV", copy(cache(), { srcV: source(), cacheV: short() }));
refuse("withV, of K", copy(short(), { srcV: source(), cacheV: cache() }));
refuse("position", copy(cache(), undefined, 9));

function attend(batchStride: number, kL: number): number {
  const block = new Block(structSizes.MAFlashAttnPrefillArgs);
  const strides = [0, 0, 64];
  packMAFlashAttnPrefillArgs(block, 0, {
    ...{ q: tensor("bf16", 128), k: tensor("bf16", 128), v: tensor("bf16", 128), out: tensor("bf16", 128) },
    ...{ mask: undefined, tileClasses: undefined, maskParams: undefined, nKvHeads: 1, causal: 0 },
    ...noAttentionOptions,
    params: {
      ...{ B: 1, H: 1, D: 64, qL: 1, kL, scale: 1, softcapping: 1, qL_off: 0 },
      ...{ Q_strides: strides, K_strides: strides, V_strides: strides, O_strides: strides },
    },
  });
  // A stride below 0, which no number of the record can be.
  new DataView(block.buffer).setBigInt64(6 * structSizes.MATensor + 64, BigInt(batchStride), true);
  return native.ma_flash_attn_prefill(pass, block.bytes);
}

refuse("stride", attend(-1, 1));
refuse("length", attend(0, 0));

const quantize = new Block(structSizes.MAHadamardQuantizeKvArgs);
packMAHadamardQuantizeKvArgs(quantize, 0, {
  ...{ srcK: tensor("f32", 256), packedK: tensor("u8", 256), normsK: tensor("f32", 256) },
  ...{ srcV: undefined, packedV: undefined, normsV: undefined, rmsScratch: undefined, hbParams: undefined },
  params: { head_dim: 63, num_kv_heads: 1, write_pos: 0, cache_capacity: 1, is_sliding: 0, scale_factor_d512: 1 },
  ...{ packing: packingCodes.nibble, batch: 1, rmsCoordinates: 0 },
});
refuse("quantized", native.ma_hadamard_quantize_kv(pass, quantize.bytes));

console.log(JSON.stringify(failures));
