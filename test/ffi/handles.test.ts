import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { structSizes } from "../../src/ffi/generated/structs.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { nativeError } from "../../src/ffi/status.ts";
import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  flashAttnPrefill,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type Pass,
  type Tensor,
  type TileClasses,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const native = loadLibrary();
const scratch = new Block(8192);

/** Every exported function of a handle, with that handle and scratch memory for the rest. */
const byKind = {
  device: {
    ma_device_info: (handle: number) => native.ma_device_info(handle, scratch.bytes),
    ma_buffer_create: (handle: number) =>
      native.ma_buffer_create(handle, 16n, 0, scratch.bytes, scratch.bytes.subarray(8)),
    ma_source_register: (handle: number) =>
      native.ma_source_register(handle, Buffer.from("name\0"), Buffer.from("source\0"), 6n, null),
    ma_kernel_names: (handle: number) =>
      native.ma_kernel_names(handle, scratch.bytes.subarray(8), 4096n, scratch.bytes),
    ma_pipeline_create: (handle: number) =>
      native.ma_pipeline_create(handle, Buffer.from("kv_cache_copy\0"), null, 0, scratch.bytes),
    ma_pass_create: (handle: number) => native.ma_pass_create(handle, 0, scratch.bytes),
    ma_device_events: (handle: number) => native.ma_device_events(handle, scratch.bytes),
    ma_buffer_adopt: (handle: number) =>
      native.ma_buffer_adopt(handle, 0, 0n, 0n, scratch.bytes, scratch.bytes.subarray(8)),
    ma_device_close: (handle: number) => native.ma_device_close(handle),
  },
  buffer: {
    ma_buffer_info: (handle: number) => native.ma_buffer_info(handle, scratch.bytes, scratch.bytes.subarray(8)),
    ma_buffer_address: (handle: number) => native.ma_buffer_address(handle, scratch.bytes),
    ma_buffer_share: (handle: number) => native.ma_buffer_share(handle, scratch.bytes, scratch.bytes.subarray(8)),
    ma_buffer_release: (handle: number) => native.ma_buffer_release(handle),
  },
  pipeline: {
    ma_pipeline_info: (handle: number) => native.ma_pipeline_info(handle, scratch.bytes),
    ma_pipeline_executor: (handle: number) => native.ma_pipeline_executor(handle, null, 0n, scratch.bytes.subarray(8)),
    ma_pipeline_release: (handle: number) => native.ma_pipeline_release(handle),
  },
  pass: {
    ma_pass_commit: (handle: number) => native.ma_pass_commit(handle),
    ma_pass_commit_notify: (handle: number) => native.ma_pass_commit_notify(handle),
    ma_record_scalar: (handle: number) => native.ma_record_scalar(handle, Buffer.from("n\0"), 0, 1, scratch.bytes),
    ma_record_use: (handle: number) => native.ma_record_use(handle, 0, Buffer.from("n\0")),
    ma_record_tensor: (handle: number) =>
      native.ma_record_tensor(handle, Buffer.from("t\0"), new Block(structSizes.MATensor).bytes, scratch.bytes),
    ma_record_run: (handle: number) => native.ma_record_run(handle, new Block(structSizes.MARun).bytes, scratch.bytes),
    ma_pass_wait: (handle: number) => native.ma_pass_wait(handle),
    ma_pass_info: (handle: number) => native.ma_pass_info(handle, scratch.bytes),
    ma_pass_describe: (handle: number) =>
      native.ma_pass_describe(handle, scratch.bytes.subarray(8), 4096n, scratch.bytes),
    ma_encode_kernel: (handle: number) =>
      native.ma_encode_kernel(handle, new Block(structSizes.MAKernelDispatch).bytes),
    ma_kv_cache_copy: (handle: number) =>
      native.ma_kv_cache_copy(handle, new Block(structSizes.MAKvCacheCopyArgs).bytes),
    ma_kv_cache_copy_batch: (handle: number) =>
      native.ma_kv_cache_copy_batch(handle, new Block(structSizes.MAKvCacheCopyBatchArgs).bytes),
    ma_kv_cache_copy_seq: (handle: number) =>
      native.ma_kv_cache_copy_seq(handle, new Block(structSizes.MAKvCacheCopySeqArgs).bytes),
    ma_kv_cache_copy_head_major: (handle: number) =>
      native.ma_kv_cache_copy_head_major(handle, new Block(structSizes.MAKvCacheCopyHeadMajorArgs).bytes),
    ma_flash_attn_prefill: (handle: number) =>
      native.ma_flash_attn_prefill(handle, new Block(structSizes.MAFlashAttnPrefillArgs).bytes),
    ma_copy: (handle: number) => native.ma_copy(handle, new Block(structSizes.MACopyArgs).bytes),
    ma_pass_release: (handle: number) => native.ma_pass_release(handle),
    ma_build_mask: (handle: number) => native.ma_build_mask(handle, new Block(structSizes.MABuildMaskArgs).bytes),
    ma_classify_mask_tiles: (handle: number) =>
      native.ma_classify_mask_tiles(handle, new Block(structSizes.MAClassifyMaskTilesArgs).bytes),
  },
} as const;

type Kind = keyof typeof byKind;

/** One live handle of each kind. */
function openHandles(): Record<Kind, number> {
  const out = new Block(16);
  const take = (status: number): number => {
    if (status !== 0) throw nativeError(native, status);
    return out.u32[0] as number;
  };
  const device = take(native.ma_device_open(out.bytes));
  return {
    device,
    buffer: take(native.ma_buffer_create(device, 64n, 0, out.bytes, out.bytes.subarray(8))),
    pipeline: take(
      native.ma_pipeline_create(device, Buffer.from("kv_cache_copy_f32\0"), constants.bytes, 2, out.bytes),
    ),
    pass: take(native.ma_pass_create(device, 0, out.bytes)),
  };
}

// The copies' function constants 0 and 1, both false.
const constants = new Block(2 * structSizes.MAConstant);
constants.u32.set([0, 8, 1], 2);
constants.u32.set([1, 8, 1], structSizes.MAConstant / 4 + 2);

const kinds = Object.keys(byKind) as Kind[];
const invalidHandle = -2;

describe.each(kinds)("a %s handle in the C ABI", (kind) => {
  const functions = Object.entries(byKind[kind]);

  test.each(functions)("%s refuses zero, unknown handles and those of another kind", (_, call) => {
    const handles = openHandles();
    const foreign = kinds.filter((other) => other !== kind).map((other) => handles[other]);
    for (const handle of [0, 0xffff_ffff, 0x7fff_ffff, (handles[kind] ^ 0x8000_0000) >>> 0, ...foreign]) {
      expect([handle, call(handle)]).toEqual([handle, invalidHandle]);
      expect(nativeError(native, invalidHandle).message.length).toBeGreaterThan(0);
    }
    expect(native.ma_device_close(handles.device)).toBe(0);
  });

  test.each(functions)("%s refuses a handle that was released, and one whose device was closed", (_, call) => {
    const handles = openHandles();
    if (kind !== "device") {
      const release = {
        buffer: native.ma_buffer_release,
        pipeline: native.ma_pipeline_release,
        pass: native.ma_pass_release,
      };
      expect(release[kind](handles[kind])).toBe(0);
      expect(call(handles[kind])).toBe(invalidHandle);
    }
    const closed = openHandles();
    expect(native.ma_device_close(closed.device)).toBe(0);
    expect(call(closed[kind])).toBe(invalidHandle);
    expect(native.ma_device_close(handles.device)).toBe(0);
  });
});

test("a slot that is used again does not revive the handles before it", () => {
  using device = Device.open();
  const first = device.tensor("f32", [4]);
  const stale = handleOf(device, first);
  first.dispose();
  for (let i = 0; i < 300; i++) {
    using next = device.tensor("f32", [4]);
    expect(handleOf(device, next)).not.toBe(stale);
    expect(native.ma_buffer_release(stale)).toBe(invalidHandle);
  }
});

function handleOf(device: Device, tensor: Tensor<"f32">): number {
  using cache = device.tensor("f32", [1, 4]);
  using pass = device.pass();
  using rows = tensor.reshape([1, 4]);
  kvCacheCopy(pass, { src: rows, cache, writePos: 0 });
  return pass.describe()[0]?.reads[0]?.buffer ?? 0;
}

test("NULL pointers are refused where the ABI wants memory", () => {
  const handles = openHandles();
  const calls = [
    native.ma_device_open(null),
    native.ma_device_info(handles.device, null),
    native.ma_buffer_create(handles.device, 16n, 0, null, null),
    native.ma_source_register(handles.device, null, null, 0n, null),
    native.ma_pipeline_create(handles.device, null, null, 0, scratch.bytes),
    native.ma_pipeline_create(handles.device, Buffer.from("kv_cache_copy\0"), null, 2, scratch.bytes),
    native.ma_pipeline_info(handles.pipeline, null),
    native.ma_pass_create(handles.device, 0, null),
    native.ma_pass_info(handles.pass, null),
    native.ma_encode_kernel(handles.pass, null),
    native.ma_kv_cache_copy(handles.pass, null),
    native.ma_kv_cache_copy_batch(handles.pass, null),
    native.ma_kv_cache_copy_seq(handles.pass, null),
    native.ma_kv_cache_copy_head_major(handles.pass, null),
    native.ma_flash_attn_prefill(handles.pass, null),
  ];
  expect(calls).toEqual(calls.map(() => -1));
  expect(native.ma_device_close(handles.device)).toBe(0);
});

interface Scene {
  readonly pass: Pass;
  readonly rows: Tensor<"f32">;
  readonly cache: Tensor<"f32">;
  readonly tokens: Tensor<"f32">;
  readonly token: Tensor<"f32">;
  readonly heads: Tensor<"f32">;
  readonly bf16: Tensor<"bf16">;
  readonly q: Tensor<"bf16">;
  readonly out: Tensor<"bf16">;
  readonly mask: Tensor<"bool">;
  readonly tileClasses: TileClasses;
}

function scene(device: Device): Scene {
  const mask = device.tensor("bool", [4, 4]);
  using preparing = device.pass();
  return {
    pass: device.pass(),
    rows: device.tensor("f32", [2, 8]),
    cache: device.tensor("f32", [4, 8]),
    tokens: device.tensor("f32", [3, 2, 8]),
    token: device.tensor("f32", [2, 8]),
    heads: device.tensor("f32", [2, 4, 8]),
    bf16: device.tensor("bf16", [2, 4, 8]),
    q: device.tensor("bf16", [1, 2, 4, 256]),
    out: device.tensor("bf16", [1, 2, 4, 256]),
    mask,
    tileClasses: classifyMaskTiles(preparing, { mask, headDim: 256 }),
  };
}

/** A call of each op whose tensor `argument` comes from `other` and all else from `own`. */
const calls: readonly { op: string; argument: string; call: (own: Scene, other: Scene) => void }[] = [
  {
    op: "kvCacheCopy",
    argument: "src",
    call: ({ pass, cache }, { rows }) => kvCacheCopy(pass, { src: rows, cache, writePos: 0 }),
  },
  {
    op: "kvCacheCopy",
    argument: "cache",
    call: ({ pass, rows }, { cache }) => kvCacheCopy(pass, { src: rows, cache, writePos: 0 }),
  },
  {
    op: "kvCacheCopyBatch",
    argument: "src",
    call: ({ pass, heads }, { token }) => kvCacheCopyBatch(pass, { src: token, cache: heads, seqPos: 0 }),
  },
  {
    op: "kvCacheCopyBatch",
    argument: "v.cache",
    call: ({ pass, token, heads }, other) =>
      kvCacheCopyBatch(pass, { k: { src: token, cache: heads }, v: { src: token, cache: other.heads }, seqPos: 0 }),
  },
  {
    op: "kvCacheCopySeq",
    argument: "cache",
    call: ({ pass, tokens }, { heads }) => kvCacheCopySeq(pass, { src: tokens, cache: heads, seqPosStart: 0 }),
  },
  {
    op: "kvCacheCopySeq",
    argument: "k.src",
    call: ({ pass, tokens, heads }, other) =>
      kvCacheCopySeq(pass, {
        k: { src: other.tokens, cache: heads },
        v: { src: tokens, cache: heads },
        seqPosStart: 0,
      }),
  },
  {
    op: "kvCacheCopyHeadMajor",
    argument: "src",
    call: (own, other) => kvCacheCopyHeadMajor(own.pass, { src: other.bf16, cache: own.bf16, seqPosStart: 0 }),
  },
  {
    op: "flashAttnPrefill",
    argument: "q",
    call: ({ pass, q: k, out }, { q }) => flashAttnPrefill(pass, { q, k, v: k, out }),
  },
  {
    op: "flashAttnPrefill",
    argument: "k",
    call: ({ pass, q, out }, { q: k }) => flashAttnPrefill(pass, { q, k, v: q, out }),
  },
  {
    op: "flashAttnPrefill",
    argument: "v",
    call: ({ pass, q, out }, { q: v }) => flashAttnPrefill(pass, { q, k: q, v, out }),
  },
  {
    op: "flashAttnPrefill",
    argument: "out",
    call: ({ pass, q }, { out }) => flashAttnPrefill(pass, { q, k: q, v: q, out }),
  },
  {
    op: "flashAttnPrefill",
    argument: "mask",
    call: ({ pass, q, out }, { mask }) => flashAttnPrefill(pass, { q, k: q, v: q, out, mask }),
  },
  {
    op: "flashAttnPrefill",
    argument: "tileClasses",
    call: ({ pass, q, out, mask }, { tileClasses }) =>
      flashAttnPrefill(pass, { q, k: q, v: q, out, mask, tileClasses }),
  },
  {
    op: "buildCausalMask",
    argument: "mask",
    call: ({ pass }, { mask }) => buildCausalMask(pass, { mask }),
  },
  {
    op: "buildSlidingWindowMask",
    argument: "mask",
    call: ({ pass }, { mask }) => buildSlidingWindowMask(pass, { mask, window: 2 }),
  },
  {
    op: "classifyMaskTiles",
    argument: "mask",
    call: ({ pass }, { mask }) => {
      classifyMaskTiles(pass, { mask, headDim: 64 });
    },
  },
  {
    op: "classifyMaskTiles",
    argument: "reuse",
    call: ({ pass, mask }, { tileClasses: reuse }) => {
      classifyMaskTiles(pass, { mask, headDim: 64, reuse });
    },
  },
];

describe.each([...calls])("$op with $argument", ({ argument, call }) => {
  test("of another device", () => {
    using device = Device.open();
    using otherDevice = Device.open();
    const own = scene(device);
    expectRefusal(() => call(own, scene(otherDevice)), "invalid-handle", argument, "another device");
    expect(own.pass.describe()).toEqual([]);
  });

  test("disposed", () => {
    using device = Device.open();
    const own = scene(device);
    const gone = scene(device);
    for (const tensor of Object.values(gone)) tensor.dispose();
    expectRefusal(() => call(own, gone), "disposed", argument);
    expect(own.pass.describe()).toEqual([]);
  });

  test("in a pass that is disposed, or whose device is", () => {
    const device = Device.open();
    const own = scene(device);
    const other = { ...own, pass: device.pass() };
    own.pass.dispose();
    expectRefusal(() => call(own, own), "disposed", "pass");
    device.dispose();
    expectRefusal(() => call(other, other), "disposed", "pass");
  });
});
