import { afterAll, expect, test } from "bun:test";
import { structSizes } from "../../src/ffi/generated/structs.ts";
import { Device, hadamardQuantizeKvSeq, kvCacheCopySeq, type Tensor } from "../../src/index.ts";
import { sourceValues } from "../helpers/quantized.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// The kernels for many tokens take batches: the same bytes as a dispatch for each batch.

const device = Device.open();
afterAll(() => device.dispose());

const [batches, nSrcTokens, nHeads, capacity] = [3, 7, 2, 5];
/** Slots 3, 4, 0 and 1 of five. */
const [start, nTokens, srcTokOffset] = [13, 4, 2];

interface Layer {
  readonly src: Tensor<"f32">;
  readonly outputs: readonly Tensor[];
}

/** What a kernel does to all batches at once, and the same batch by batch. */
interface Family {
  readonly name: string;
  readonly file: string;
  readonly kernel: string;
  readonly headDim: number;
  /** The outputs of `heads` heads. */
  outputs(heads: number): readonly Tensor[];
  encodeOne(layer: Layer): void;
  encodeAll(pipeline: string, layer: Layer): void;
}

function copies(headDim: number, wideIndex: boolean): Family {
  return {
    name: `kv_cache_copy_seq, rows of ${headDim}, 64-bit offsets ${wideIndex}`,
    file: "kv_cache_copy.metal",
    kernel: "kv_cache_copy_seq_f32_to_bf16",
    headDim,
    outputs: (heads) => [device.tensor("bf16", [heads, capacity, headDim])],
    encodeOne({ src, outputs: [cache] }) {
      using pass = device.pass();
      kvCacheCopySeq(pass, {
        src,
        cache: cache as Tensor<"bf16">,
        seqPosStart: start,
        isSliding: true,
        nTokens,
        srcTokOffset,
      });
      pass.commitAndWait();
    },
    encodeAll(kernel, { src, outputs }) {
      const four = headDim % 4 === 0;
      const constants = [four, wideIndex].map((value, index) => ({ index, dtype: "bool", value }) as const);
      using pipeline = device.pipeline(kernel, { constants });
      using pass = device.pass();
      pass.dispatch(pipeline, {
        buffers: [{ tensor: src, access: "read" }, ...outputs],
        bytes: { 2: new Uint32Array([nHeads, headDim, capacity, start, nTokens, srcTokOffset, nSrcTokens]) },
        grid: [four ? headDim / 4 : headDim, batches * nHeads, nTokens],
        threads: [8, 2, 2],
      });
      pass.commitAndWait();
    },
  };
}

/** In 4 bits; a power of two without a kernel of its own goes through threadgroup memory. */
function quantized(headDim: number, lanes: number | undefined): Family {
  const anySize = lanes === undefined;
  return {
    name: `hadamard_quantize_kv_seq, D=${headDim}`,
    file: anySize ? "hadamard_quantize_kv_any.metal" : "hadamard_quantize_kv_seq.metal",
    kernel: anySize ? "hadamard_quantize_kv_seq" : `hadamard_quantize_kv_seq_fast_d${headDim}`,
    headDim,
    outputs: (heads) => [
      device.tensor("u8", [heads, capacity, headDim / 2]),
      device.tensor("f32", [heads, capacity, Math.max(1, headDim / 256)]),
    ],
    encodeOne({ src, outputs: [packed, norms] }) {
      using pass = device.pass();
      hadamardQuantizeKvSeq(pass, {
        src,
        packed: packed as Tensor<"u8">,
        norms: norms as Tensor<"f32">,
        bits: 4,
        writePosStart: start,
        nTokens,
        srcTokOffset,
        isSliding: true,
      });
      pass.commitAndWait();
    },
    encodeAll(kernel, { src, outputs }) {
      const params = new Uint32Array(structSizes.HadamardQuantizeSeqParams / 4);
      params.set([headDim, nHeads, start, capacity, 1, 0, 4, nTokens, srcTokOffset, nSrcTokens]);
      new Float32Array(params.buffer)[5] = 1;
      // Rows that begin at whole words, which do not turn.
      const constants = [2, 3, 4, 5].map((index) => ({ index, dtype: "bool", value: index === 2 }) as const);
      const ofFloats = { index: 6, dtype: "u32", value: 1 } as const;
      using pipeline = device.pipeline(kernel, { constants: [...constants, ofFloats] });
      using pass = device.pass();
      const [packed, norms] = outputs as [Tensor, Tensor];
      const source = { tensor: src, access: "read" } as const;
      const rows = nHeads * nTokens;
      pass.dispatch(pipeline, {
        // Neither positions nor a block table are read.
        buffers: { 0: source, 1: packed, 2: norms, 4: source, 5: packed, 6: norms, 7: norms, 8: norms },
        bytes: { 3: params },
        threadgroupMemory: anySize ? { 0: headDim * 8 } : {},
        form: "threadgroups",
        // The last threadgroup has threads without a row.
        grid: anySize ? [rows, 1, batches] : [Math.ceil((rows * lanes) / 32), 1, batches],
        threads: [32],
      });
      pass.commitAndWait();
    },
  };
}

/** Whether all batches at once leave the bytes that one after the other leave. */
function agrees(family: Family, patches: readonly ShaderPatch[]): boolean {
  const { headDim } = family;
  const src = device
    .tensor("f32", [batches, nSrcTokens, nHeads, headDim])
    .set(sourceValues(headDim, batches * nSrcTokens * nHeads, 3));
  const together = family.outputs(batches * nHeads);
  const apart = family.outputs(batches * nHeads);
  for (let batch = 0; batch < batches; batch++) {
    family.encodeOne({
      src: src.slice(batch, batch + 1).reshape([nSrcTokens, nHeads, headDim]),
      outputs: apart.map((output) => output.slice(batch * nHeads, (batch + 1) * nHeads)),
    });
  }
  family.encodeAll(plant(device, family.file, family.kernel, patches), { src, outputs: together });
  return together.every((output, i) => Buffer.compare(bytesOf(output), bytesOf(apart[i] as Tensor)) === 0);
}

function bytesOf(tensor: Tensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = tensor.view();
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const families = [
  copies(8, false),
  copies(8, true),
  copies(5, false),
  quantized(64, 8),
  quantized(80, 4),
  quantized(512, 16),
  quantized(32, undefined),
  quantized(1024, undefined),
];

testTable("batches in one dispatch", families, (family) => {
  expect(agrees(family, [])).toBe(true);
});

const copyMistakes: readonly ShaderPatch[] = [
  { find: /batch \* params\.nSrcTokens/, replace: "batch * params.nTokens" },
  { find: /position\.y % params\.nHeads/, replace: "position.y" },
  { find: /\(cache_head \* params\.capacity/, replace: "(head * params.capacity" },
];
const quantizedMistakes: readonly ShaderPatch[] = [
  { find: /ulong\(batch\) \* params\.n_src_tokens/, replace: "ulong(batch) * params.n_tokens" },
  {
    find: /(?<row>written_row_of\(params, (?:places|\{positions, block_table\}), )(?:at\.batch|position\.z)/,
    replace: "$<row>0",
  },
];
test.each([
  ...copyMistakes.map((patch) => [copies(8, false), patch] as const),
  ...[quantized(128, 8), quantized(32, undefined)].flatMap((family) =>
    quantizedMistakes.map((patch) => [family, patch] as const),
  ),
])("$name: a mistake is seen", (family, patch) => {
  expect(agrees(family, [patch])).toBe(false);
});
