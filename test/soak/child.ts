/**
 * Many operations in a process of its own, whose memory nobody else
 * uses: `bun child.ts OPERATIONS ROUNDS`. Prints one line of JSON, a `Summary`.
 */
import { loadLibrary } from "../../src/ffi/library.ts";
import {
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  dequantizeKv,
  flashAttnPrefill,
  hadamardQuantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type TileClasses,
} from "../../src/index.ts";

const kinds = ["device", "buffer", "pipeline", "pass"] as const;
type Kind = (typeof kinds)[number];
type Released = Exclude<Kind, "buffer">;

export interface Summary {
  readonly operations: number;
  /** Objects of the C ABI that were opened during the run. */
  readonly opened: Readonly<Record<Kind, number>>;
  /** Of these, how many are open at its end; buffers go by a callback of the collector's, which calls nothing here. */
  readonly live: Readonly<Record<Released, number>>;
  /** Bytes that the device holds when all tensors are disposed: 0 unless a buffer is left. */
  readonly allocated: number;
  /** Resident memory after each round, in bytes. */
  readonly resident: readonly number[];
}

const opened: Record<Kind, number> = { device: 0, buffer: 0, pipeline: 0, pass: 0 };
const live: Record<Released, number> = { device: 0, pipeline: 0, pass: 0 };

/** Counts what the C ABI opens and releases. */
function count(): void {
  const native = loadLibrary();
  const opening = {
    device: "ma_device_open",
    buffer: "ma_buffer_create",
    pipeline: "ma_pipeline_create",
    pass: "ma_pass_create",
  } as const;
  const releasing = {
    device: "ma_device_close",
    pipeline: "ma_pipeline_release",
    pass: "ma_pass_release",
  } as const;
  const functions = native as unknown as Record<string, (...args: unknown[]) => number>;
  const watch = (name: string, onSuccess: () => void) => {
    const call = functions[name];
    if (call === undefined) throw new Error(`no function ${name}`);
    functions[name] = (...args) => {
      const status = call(...args);
      if (status === 0) onSuccess();
      return status;
    };
  };
  for (const kind of kinds) {
    watch(opening[kind], () => {
      opened[kind]++;
      if (kind !== "buffer") live[kind]++;
    });
    if (kind !== "buffer") watch(releasing[kind], () => live[kind]--);
  }
}

const constants = [0, 1].map((index) => ({ index, dtype: "bool", value: false }) as const);

/** Ten passes of ten operations, every kind and small, with tensors and a pipeline of their own. */
function passes(device: Device): number {
  using rows = device.tensor("f32", [2, 8]);
  using token = rows.reshape([2, 8]);
  using cache = device.tensor("f32", [16, 8]);
  using tokens = device.tensor("f32", [3, 2, 8]);
  using heads = device.tensor("f32", [2, 4, 8]);
  using bf16 = device.tensor("bf16", [2, 4, 8]);
  using copy = device.tensor("bf16", [2, 4, 8]);
  using q = device.tensor("bf16", [1, 1, 2, 64]);
  using out = device.tensor("bf16", [1, 1, 2, 64]);
  using mask = device.tensor("bool", [2, 2]);
  using vectors = device.tensor("f32", [3, 1, 64]);
  using first = vectors.slice(0, 1);
  using vector = first.reshape([1, 64]);
  using packed = device.tensor("u8", [1, 4, 32]);
  using norms = device.tensor("f32", [1, 4, 1]);
  using restored = device.tensor("f16", [1, 4, 64]);
  const quantized = { packed, norms, bits: 4 } as const;
  using _pipeline = device.pipeline("kv_cache_copy_f32", { constants });
  using stack = new DisposableStack();
  let tileClasses: TileClasses | undefined;
  let operations = 0;
  for (let i = 0; i < 10; i++) {
    using pass = device.pass();
    kvCacheCopy(pass, { src: rows, cache, writePos: 100, isSliding: true });
    kvCacheCopyBatch(pass, { src: token, cache: heads, seqPos: 3 });
    kvCacheCopySeq(pass, { src: tokens, cache: heads, seqPosStart: 2, isSliding: true });
    kvCacheCopyHeadMajor(pass, { src: bf16, cache: copy, seqPosStart: 1, nTokens: 3 });
    buildSlidingWindowMask(pass, { mask, window: 1 });
    tileClasses = classifyMaskTiles(pass, { mask, headDim: 64, ...(tileClasses && { reuse: tileClasses }) });
    if (i === 0) stack.use(tileClasses);
    flashAttnPrefill(pass, { q, k: q, v: q, out, mask, tileClasses });
    hadamardQuantizeKvSeq(pass, { src: vectors, ...quantized, writePosStart: 0 });
    hadamardQuantizeKv(pass, { src: vector, ...quantized, writePos: 3 });
    dequantizeKv(pass, { ...quantized, out: restored });
    pass.commitAndWait();
    operations += pass.info.dispatches;
  }
  return operations;
}

const [operations = 0, rounds = 1] = process.argv.slice(2).map(Number);
count();
const device = Device.open();
const resident: number[] = [];
let done = 0;
for (let round = 1; round <= rounds; round++) {
  while (done < (operations / rounds) * round) done += passes(device);
  Bun.gc(true);
  resident.push(process.memoryUsage.rss());
}
const allocated = device.info.currentAllocatedSize;
device.dispose();
const summary: Summary = { operations: done, opened, live, allocated, resident };
console.log(JSON.stringify(summary));
