import { ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { dtypeCodes, passCodes } from "../../src/ffi/generated/codes.ts";
import {
  packMAApplyRopeArgs,
  packMAHadamardQuantizeKvSeqArgs,
  packMAKvCacheCopyArgs,
  packMARun,
  packMATensor,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { checkStatus } from "../../src/ffi/status.ts";
import { readText } from "../../src/ffi/text.ts";
import { expectRefusal } from "../helpers/errors.ts";

const native = loadLibrary();

/** A recorded pass of the C ABI that copies a row of two floats to a slot of four. */
function scene() {
  const out = new Block(16);
  const take = (status: number): number => {
    checkStatus(native, status);
    return out.u32[0] as number;
  };
  const device = take(native.ma_device_open(out.bytes));
  const buffer = (length: bigint) => take(native.ma_buffer_create(device, length, 0, out.bytes, out.bytes.subarray(8)));
  const [src, cache] = [buffer(8n), buffer(32n)];
  const pass = take(native.ma_pass_create(device, passCodes.recorded, out.bytes));
  const tensor = (handle: number, length: number) => ({
    buffer: handle,
    dtype: dtypeCodes.f32,
    offsetLow: 0,
    offsetHigh: 0,
    lengthLow: length,
    lengthHigh: 0,
  });
  const args = new Block(structSizes.MAKvCacheCopyArgs);
  packMAKvCacheCopyArgs(args, 0, {
    src: tensor(src, 8),
    cache: tensor(cache, 32),
    params: { writePos: 1, rowSize: 2, nNew: 1, cacheCap: 4, isSliding: 0 },
  });
  const copy = () => checkStatus(native, native.ma_kv_cache_copy(pass, args.bytes));
  const run = (fields: Partial<Parameters<typeof packMARun>[2]> = {}) => {
    const block = new Block(structSizes.MARun);
    packMARun(block, 0, { scalars: 0, tensors: 0, scalarCount: 0, tensorCount: 0, notify: 0, ...fields });
    return take(native.ma_record_run(pass, block.bytes, out.bytes));
  };
  const describe = (handle: number): unknown =>
    JSON.parse(
      readText((text, capacity, needed) =>
        checkStatus(native, native.ma_pass_describe(handle, text, capacity, needed)),
      ),
    );
  const close = { [Symbol.dispose]: () => void native.ma_device_close(device) };
  return { device, src, cache, pass, tensor, copy, run, describe, take, out, close };
}

test("a run is a pass of its own: waited for, described as recorded, released", () => {
  const { close, copy, run, describe, pass, out } = scene();
  using _ = close;
  copy();
  const [first, second] = [run(), run()];
  expect(first).not.toBe(second);
  for (const started of [first, second]) {
    checkStatus(native, native.ma_pass_wait(started));
    expect(describe(started)).toEqual(describe(pass));
    const bytes = new Block(64);
    checkStatus(native, native.ma_pass_argument_bytes(started, 0, 2, bytes.bytes, 64n, out.bytes));
    expect([...bytes.u32.subarray(0, 5)]).toEqual([1, 2, 1, 4, 0]);
    checkStatus(native, native.ma_pass_release(started));
  }
});

test("a run describes what it encodes, where that is nothing too", () => {
  const { close, copy, run, describe, pass, take, out } = scene();
  using _ = close;
  const name = Buffer.from("nNew\0");
  const scalar = take(native.ma_record_scalar(pass, name, 0, 1, out.bytes));
  checkStatus(native, native.ma_record_use(pass, scalar, name));
  copy();
  for (const count of [1, 0]) {
    const value = Uint32Array.of(count);
    const started = run({ scalars: ptr(value), scalarCount: 1 });
    checkStatus(native, native.ma_pass_wait(started));
    expect(describe(started)).toHaveLength(count);
  }
});

test("a block table is checked where no token is written", () => {
  const { close, pass, tensor, src, cache, out } = scene();
  using _ = close;
  const bytes = new Block(structSizes.MATensor);
  packMATensor(bytes, 0, tensor(cache, 32));
  checkStatus(native, native.ma_record_tensor(pass, Buffer.from("cache\0"), bytes.bytes, out.bytes));
  const args = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);
  packMAHadamardQuantizeKvSeqArgs(args, 0, {
    srcK: tensor(src, 8),
    packedK: { ...tensor(cache, 32), dtype: dtypeCodes.u8 },
    normsK: tensor(cache, 32),
    srcV: undefined,
    packedV: undefined,
    normsV: undefined,
    positions: undefined,
    blockTable: {
      ...tensor(cache, 8),
      ...{ dtype: dtypeCodes.i32, offsetLow: 0xffff_fffc, offsetHigh: 0xffff_ffff },
    },
    params: {
      ...{ head_dim: 64, num_kv_heads: 1, write_pos_start: 0, cache_capacity: 64, is_sliding: 0, scale_factor_d512: 1 },
      ...{ codebook_bits: 4, n_tokens: 0, src_tok_offset: 0, n_src_tokens: 1, positions_per_batch: 0, page_tokens: 16 },
      ...{ n_pages: 4, has_positions: 0, rotaryDim: 0, ropeOffset: 0, attentionScale: 1 },
    },
    ...{ packing: 1, batch: 1, pairing: 0, packingV: 0, bitsV: 0, invFreq: 0, invFreqCount: 0 },
  });
  const encode = () => checkStatus(native, native.ma_hadamard_quantize_kv_seq(pass, args.bytes));
  expectRefusal(encode, "buffer-too-small", "blockTable", 32);
});

test("a released buffer makes a run an error that names the operation", () => {
  const { close, copy, run, src } = scene();
  using _ = close;
  copy();
  copy();
  checkStatus(native, native.ma_buffer_release(src));
  expectRefusal(run, "invalid-handle", undefined, "operation 0 (ma_kv_cache_copy)", "released");
});

test("what does not suit the recording is refused", () => {
  const { close, copy, run, pass, tensor, cache, take, device, out } = scene();
  using _ = close;
  copy();
  expectRefusal(() => run({ scalarCount: 1 }), "invalid-argument", "scalarCount", 1, 0);
  expectRefusal(() => run({ tensorCount: 1 }), "invalid-argument", "tensorCount", 1, 0);
  expectRefusal(() => run({ notify: 2 }), "invalid-argument", "notify", 2);
  expectRefusal(() => run({ notify: 1 }), "invalid-state", undefined, "ma_device_events");
  const packed = new Block(structSizes.MATensor);
  packMATensor(packed, 0, tensor(cache, 33));
  const name = Buffer.from("cache\0");
  expectRefusal(
    () => checkStatus(native, native.ma_record_tensor(pass, name, packed.bytes, out.bytes)),
    "buffer-too-small",
    "tensor",
    33,
    32,
  );
  const plain = take(native.ma_pass_create(device, passCodes.concurrent, out.bytes));
  const record = () => checkStatus(native, native.ma_record_scalar(plain, name, 0, 1, out.bytes));
  expectRefusal(record, "invalid-state", "pass", "not recorded");
  expectRefusal(() => checkStatus(native, native.ma_pass_commit(pass)), "invalid-state", undefined, "recorded");
  // And the recording runs as before.
  checkStatus(native, native.ma_pass_wait(run()));
});

test("a list that arguments lead to is the recording's own, whatever becomes of the caller's", () => {
  const { close, run, pass, tensor, src, cache, take, out } = scene();
  using _ = close;
  const frequencies = new Float32Array(new ArrayBuffer(4)).fill(0.25);
  const args = new Block(structSizes.MAApplyRopeArgs);
  packMAApplyRopeArgs(args, 0, {
    q: tensor(src, 8),
    outQ: tensor(cache, 8),
    k: undefined,
    outK: undefined,
    positions: undefined,
    params: {
      ...{ batch: 1, nHeads: 1, nKvHeads: 0, nTokens: 1, headDim: 2, rotaryDim: 2 },
      ...{ sequenceMajor: 0, positionsPerBatch: 0, start: 0, attentionScale: 1 },
    },
    pairing: 1,
    invFreq: ptr(frequencies),
    invFreqCount: 1,
  });
  const name = new TextEncoder().encode("start\0");
  const scalar = take(native.ma_record_scalar(pass, name, 0, 9, out.bytes));
  checkStatus(native, native.ma_record_use(pass, scalar, name));
  checkStatus(native, native.ma_apply_rope(pass, args.bytes));
  frequencies.fill(Number.NaN);
  const value = Uint32Array.of(3);
  const started = run({ scalars: ptr(value), scalarCount: 1 });
  checkStatus(native, native.ma_pass_wait(started));
  const bytes = new Block(64);
  checkStatus(native, native.ma_pass_argument_bytes(started, 0, 5, bytes.bytes, 64n, out.bytes));
  expect([out.u32[0], new Float32Array(bytes.u32.buffer, bytes.u32.byteOffset, 1)[0]]).toEqual([4, 0.25]);
});
