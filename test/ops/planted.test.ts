import { afterAll, describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packFlashAttnPrefill, structSizes } from "../../src/ffi/layout.ts";
import { Device, type Pipeline } from "../../src/index.ts";
import { type CopyTokensParams, referenceKvCacheCopySeq } from "../../src/reference/index.ts";
import { tensorRecord } from "../helpers/abi.ts";
import {
  type AttentionPlan,
  attentionError,
  attentionProblem,
  bf16Tensor,
  headDim,
  outputRows,
  shapeOf,
} from "../helpers/attention.ts";
import { bitDifferences, bitsOf, fillEdgesAndNoise, fillPattern } from "../helpers/elements.ts";
import { keepEntryPoint, patchShader, type ShaderPatch, shaderText } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the shaders: a comparison that lets one of them pass is
// too loose to mean anything for the shaders as they are.

const device = Device.open();
afterAll(() => device.dispose());

interface Mistake extends ShaderPatch {
  readonly name: string;
}

let planted = 0;

/** Registers a shader's kernel with the patches under a name of its own, which it returns. */
function plant(file: string, kernel: string, patches: readonly ShaderPatch[]): string {
  planted += 1;
  const renamed = `${kernel}_planted_${planted}`;
  const text = patches.reduce(patchShader, keepEntryPoint(shaderText(file), kernel, renamed));
  device.registerSource(`planted_${planted}.metal`, text);
  return renamed;
}

describe("attention", () => {
  const plans: readonly AttentionPlan[] = [
    { batch: 1, heads: 4, kvHeads: 2, seqLenQ: 33, seqLenK: 33, causal: true },
    { batch: 2, heads: 2, kvHeads: 2, seqLenQ: 8, seqLenK: 39 },
    // Scores rise from tile to tile, so that each rescales what came before.
    {
      heads: 1,
      kvHeads: 1,
      seqLenQ: 8,
      seqLenK: 48,
      values: { q: () => 1, k: (normal, { token }) => Math.floor(token / 16) * 0.7 + normal / 16 },
    },
  ];
  const problems = plans.map((plan) => ({ plan, problem: attentionProblem(plan) }));

  /** `AttnParams` of a head-major plan, in place in the arguments that the library's packer writes. */
  function packedParams(plan: AttentionPlan): Uint8Array {
    const { batch = 1, heads, kvHeads, seqLenQ: qL, seqLenK: kL } = plan;
    const strides = (count: number, tokens: number) => {
      return { batch: count * tokens * headDim, head: tokens * headDim, token: headDim };
    };
    const none = tensorRecord(0, 0, 0, 0);
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    packFlashAttnPrefill(block, {
      q: none,
      k: none,
      v: none,
      out: none,
      mask: undefined,
      tileClasses: undefined,
      params: {
        B: batch,
        H: heads,
        D: headDim,
        qL,
        kL,
        gqaFactor: heads / kvHeads,
        scale: 1 / Math.sqrt(headDim),
        softcapping: 1,
        NQ: Math.ceil(qL / 32),
        NK: Math.ceil(kL / 16),
        NQAligned: Math.floor(qL / 32),
        NKAligned: Math.floor(kL / 16),
        qLRem: qL % 32,
        kLRem: kL % 16,
        qLOff: 0,
        qStrides: strides(heads, qL),
        kStrides: strides(kvHeads, kL),
        vStrides: strides(kvHeads, kL),
        oStrides: strides(heads, qL),
      },
      maskStrides: { batch: 0, head: 0, token: 0 },
      nKvHeads: kvHeads,
      causal: plan.causal === true ? 1 : 0,
    });
    const sixTensors = 6 * structSizes.MATensor;
    return block.bytes.slice(sixTensors, sixTensors + 160);
  }

  function pipelineOf(kernel: string, plan: AttentionPlan): Pipeline {
    const flags = [
      [200, plan.seqLenQ % 32 === 0],
      [201, plan.seqLenK % 16 === 0],
      [300, false],
      [301, plan.causal === true],
      [303, false],
    ] as const;
    return device.pipeline(kernel, { constants: flags.map(([index, value]) => ({ index, dtype: "bool", value })) });
  }

  /** Names of the plans whose result is too far from the oracle. */
  function failures(kernel: string): string[] {
    return problems.flatMap(({ plan, problem }) => {
      const { batch = 1, heads, kvHeads, seqLenQ, seqLenK } = plan;
      using q = bf16Tensor(device, shapeOf(plan, heads, seqLenQ), problem.q.values);
      using k = bf16Tensor(device, shapeOf(plan, kvHeads, seqLenK), problem.k.values);
      using v = bf16Tensor(device, shapeOf(plan, kvHeads, seqLenK), problem.v.values);
      using out = device.tensor("bf16", shapeOf(plan, heads, seqLenQ));
      using pipeline = pipelineOf(kernel, plan);
      using pass = device.pass();
      pass.dispatch(pipeline, {
        buffers: [q, k, v, out],
        bytes: { 4: packedParams(plan) },
        form: "threadgroups",
        grid: [Math.ceil(seqLenQ / 32), heads, batch],
        threads: [32, 4, 1],
      });
      pass.commitAndWait();
      const error = attentionError(problem, outputRows(plan, bitsOf(out)));
      const passes = error.max <= 2 * error.plainMax && error.nmse <= 1e-5;
      return passes ? [] : [`${seqLenQ} x ${seqLenK}`];
    });
  }

  const file = "flash_attn_prefill.metal";
  const kernel = "flash_attn_prefill_bf16_d256";

  const mistakes: readonly Mistake[] = [
    { name: "log2(e) twice", find: /params\.scale \* M_LOG2E_F/, replace: "params.scale * M_LOG2E_F * M_LOG2E_F" },
    { name: "no log2(e)", find: /params\.scale \* M_LOG2E_F/, replace: "params.scale" },
    { name: "no scale", find: /params\.scale \* M_LOG2E_F/, replace: "M_LOG2E_F" },
    { name: "a row does not see itself", find: /<= position \?/, replace: "< position ?" },
    { name: "a row sees one key too many", find: /<= position \?/, replace: "<= position + 1 ?" },
    { name: "no causal mask", find: /if \(do_causal && first_key/, replace: "if (false && first_key" },
    { name: "another key head", find: /head \/ params\.gqa_factor/, replace: "head % params.gqa_factor" },
    { name: "keys past the end attended", find: /if \(valid_keys < BK\)/, replace: "if (false)" },
    {
      name: "the last key not attended",
      find: /lane_column \+ i < valid_keys \?/,
      replace: "lane_column + i + 1 < valid_keys ?",
    },
    {
      name: "the output not rescaled",
      find: /(elements\[[01]\]) \*= factor;\s+elements\[1\] \*= factor;/,
      replace: "",
    },
    { name: "the row sum not rescaled", find: /row_sum \*= factor;/, replace: "" },
    { name: "a quarter of the row sum", find: /row_sum \+= simd_shuffle_xor\(row_sum, 8\);/, replace: "" },
    {
      name: "the last tile of keys left out",
      find: /int key_tiles = params\.NK;/,
      replace: "int key_tiles = params.NK - 1;",
    },
    {
      name: "values of the wrong tile",
      find: /V \+ first_key \* params\.V_strides\[2\], params\.V_strides\[2\], valid_keys,\s+thread_index\);\s+threadgroup_barrier\(mem_flags::mem_threadgroup\);\s+\}\s+if \(contributes\)/,
      replace:
        "V, params.V_strides[2], valid_keys, thread_index); threadgroup_barrier(mem_flags::mem_threadgroup); } if (contributes)",
    },
  ];

  testTable("the shader as it is", [{ name: "passes" }], () => {
    expect(failures(plant(file, kernel, []))).toEqual([]);
  });

  testTable("a comparison fails where", mistakes, (mistake) => {
    expect(failures(plant(file, kernel, [mistake]))).not.toEqual([]);
  });
});

describe("cache copies", () => {
  const file = "kv_cache_copy.metal";
  const kernel = "kv_cache_copy_seq_f32_to_bf16";
  const params: CopyTokensParams = {
    nHeads: 3,
    headDim: 36,
    capacity: 6,
    seqPosStart: 10,
    nTokens: 4,
    srcTokOffset: 3,
  };
  const srcTokens = 9;

  /** The first elements that differ from the oracle's; each thread moves 4 elements or 1, with 64-bit offsets or 32-bit. */
  function differences(kernelName: string, fourElements = true, wideIndex = false): readonly string[] {
    const { nHeads, headDim: size, capacity, seqPosStart, nTokens, srcTokOffset } = params;
    using src = device.tensor("f32", [srcTokens, nHeads, size]);
    // One slot more than the kernel is told of, for a mistake to write to.
    using cache = device.tensor("bf16", [nHeads * capacity + 1, size]);
    fillEdgesAndNoise(bitsOf(src), "f32", 1);
    fillPattern(bitsOf(cache), 1);
    const expected = bitsOf(cache).slice();
    referenceKvCacheCopySeq({ src: bitsOf(src), srcDtype: "f32", cache: expected, cacheDtype: "bf16" }, params);

    const values = [fourElements, wideIndex];
    const constants = values.map((value, index) => ({ index, dtype: "bool", value }) as const);
    using pipeline = device.pipeline(kernelName, { constants });
    using pass = device.pass();
    pass.dispatch(pipeline, {
      buffers: [src, cache],
      bytes: { 2: new Uint32Array([nHeads, size, capacity, seqPosStart, nTokens, srcTokOffset]) },
      grid: [fourElements ? size / 4 : size, nHeads, nTokens],
      threads: [9, nHeads, nTokens],
    });
    pass.commitAndWait();
    return bitDifferences("bf16", bitsOf(cache), expected, true);
  }

  const mistakes: readonly Mistake[] = [
    { name: "the ring wraps one slot early", find: /= capacity - first;/, replace: "= capacity - first - 1;" },
    { name: "the ring wraps one slot late", find: /token < before_wrap \?/, replace: "token <= before_wrap ?" },
    {
      name: "the ring starts one slot on",
      find: /first_position % capacity/,
      replace: "(first_position + 1) % capacity",
    },
    { name: "ties rounded up", find: /0x7fffu \+ \(\(bits >> 16\) & 1u\)/, replace: "0x8000u" },
    { name: "ties rounded down", find: /0x7fffu \+ \(\(bits >> 16\) & 1u\)/, replace: "0x7fffu" },
    { name: "no rounding", find: /quiet : rounded/, replace: "quiet : bits" },
    { name: "NaN rounded like a number", find: /quiet : rounded/, replace: "rounded : rounded" },
    { name: "NaN cut to an infinity", find: /quiet : rounded/, replace: "bits : rounded" },
    { name: "three of four elements", find: /copy_elements<C, 4>/, replace: "copy_elements<C, 3>" },
  ];

  testTable("the shader as it is", [{ name: "passes" }], () => {
    expect(differences(plant(file, kernel, []))).toEqual([]);
  });

  test.each([
    [false, false],
    [false, true],
    [true, true],
  ])("four elements a thread %p, 64-bit offsets %p: the same result", (fourElements, wideIndex) => {
    expect(differences(kernel, fourElements, wideIndex)).toEqual([]);
  });

  testTable("a comparison fails where", mistakes, (mistake) => {
    expect(differences(plant(file, kernel, [mistake]))).not.toEqual([]);
  });
});

test("a patch that fits nowhere, or twice, is an error", () => {
  expect(() => patchShader("a b", { find: /c/, replace: "" })).toThrow("0 places");
  expect(() => patchShader("a a", { find: /a/, replace: "" })).toThrow("2 places");
});
