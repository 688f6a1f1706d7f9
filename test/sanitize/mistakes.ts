/** Kernels with one mistake each, of which a tool of compute-sanitizer has to report its own, and the same kernels without. */
import { moved } from "../../scripts/fixtures/tensors.ts";
import { type Device, hadamardQuantizeKv, type Tensor } from "../../src/index.ts";
import { normalDraws } from "../helpers/random.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";

export const tools = ["memcheck", "racecheck", "initcheck", "synccheck"] as const;
export type Tool = (typeof tools)[number];

export interface Mistake {
  readonly name: string;
  readonly tool: Tool;
  /** What the tool's report has to hold. */
  readonly says: RegExp;
  /** Runs the kernels; without the mistake, what is wrong with their result. */
  run(device: Device, isPlanted: boolean): string | undefined;
}

/** Threads of each dispatch, two SIMD groups of one threadgroup, and elements of each tensor. */
const count = 64;

const source = `
  #include <metal_stdlib>
  using namespace metal;

  kernel void stray_store(device uint *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    out[i + PLANTED] = i;
  }
  kernel void count_up(device uint *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) { out[i] = i; }
  kernel void stray_load(device uint *out [[buffer(0)]], const device uint *in [[buffer(1)]],
                         uint i [[thread_index_in_threadgroup]]) {
    out[i] = in[i + PLANTED];
  }
  kernel void count_with_gap(device uint *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    if (!PLANTED || i != 50) out[i] = i;
  }
  kernel void repeat(device uint *out [[buffer(0)]], const device uint *in [[buffer(1)]],
                     uint i [[thread_index_in_threadgroup]]) {
    out[i] = in[i];
  }
  kernel void mirror(device uint *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[${count}];
    tile[${count - 1} - i] = i;
    if (!PLANTED) threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = ${count - 1} - tile[i];
  }
  kernel void meet(device uint *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[${count}];
    tile[i] = i;
    if (!PLANTED || i < ${(count * 3) / 4}) threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[i];
  }`;

/** Kernels of the source above in one pass, each of which reads what the one before it wrote; in the end i at i. */
function ownMistake(tool: Tool, what: string, says: RegExp, ...kernels: string[]): Mistake {
  return {
    name: `${tool}.${what}`,
    tool,
    says,
    run(device, isPlanted) {
      device.registerSource("planted.metal", source, { macros: { PLANTED: isPlanted } });
      using pass = device.pass();
      let last: Tensor<"u32"> | undefined;
      for (const kernel of kernels) {
        const out = device.tensor("u32", [count], { storage: "private" });
        pass.dispatch(device.pipeline(kernel), {
          buffers: last === undefined ? { 0: out } : { 0: out, 1: { tensor: last, access: "read" } },
          grid: count,
          threads: count,
        });
        last = out;
      }
      pass.commitAndWait();
      const values = last === undefined ? [] : [...moved(last, "shared").toFloat32Array()];
      return values.every((value, i) => value === i) ? undefined : `[${values}] in place of each element's index`;
    },
  };
}

const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";
const lastBarrier = /threadgroup_barrier\(mem_flags::mem_threadgroup\);\n(?= *for \(uint byte)/;
const lastLoop = /byte < head_dim \* width \/ 8;/;

/** A token of one head by the library's kernel for any head size, 4 bits a value. */
function libraryMistake(tool: Tool, says: RegExp, patch: ShaderPatch): Mistake {
  return {
    name: `${tool}.hadamardQuantizeKv`,
    tool,
    says,
    run(device, isPlanted) {
      const draw = normalDraws(1);
      const values = Float32Array.from({ length: count }, draw);
      const src = moved(device.tensor("f32", [1, count]).set(values), "private") as Tensor<"f32">;
      const cache = () => ({
        packed: device.tensor("u8", [1, 1, count / 2], { storage: "private" }),
        norms: device.tensor("f32", [1, 1, 1], { storage: "private" }),
      });
      const [given, wanted] = [cache(), cache()];
      const patches = isPlanted ? [patch] : [];
      const kernel = plant(device, "hadamard_quantize_kv_any.metal", "hadamard_quantize_kv", patches);
      const params = new Uint32Array([count, 1, 0, 1, 0, 0, 0]);
      new Float32Array(params.buffer)[5] = 1;
      using pass = device.pass();
      const stream = { tensor: src, access: "read" } as const;
      const { packed, norms } = given;
      const constants = [
        // Which this kernel asks for and does not use.
        { name: "whole_words", dtype: "bool", value: true },
        { name: "source_dtype", dtype: "u32", value: 1 },
      ] as const;
      pass.dispatch(device.pipeline(kernel, { constants }), {
        // K, what its scaled coordinates would go to, and V: one stream runs.
        buffers: { 0: stream, 1: packed, 2: norms, 4: norms, 5: stream, 6: packed, 7: norms },
        bytes: { 3: params },
        threadgroupMemory: { 0: 8 * count },
        grid: count,
        threads: count,
      });
      hadamardQuantizeKv(pass, { src, ...wanted, bits: 4, writePos: 0 });
      pass.commitAndWait();
      const [got, expected] = [given, wanted].map((each) => moved(each.packed, "shared").bytes.toHex());
      return got === expected ? undefined : `codes ${got} in place of ${expected}`;
    },
  };
}

const strayStore = /Invalid __global__ write/;
const strayLoad = /Invalid __global__ read/;
const race = /Race reported|hazard detected/i;
const unwritten = /Uninitialized (__global__ )?memory read/i;
const divergence = /Barrier error detected/i;

export const mistakes: readonly Mistake[] = [
  ownMistake("memcheck", "store", strayStore, "stray_store"),
  ownMistake("memcheck", "load", strayLoad, "count_up", "stray_load"),
  ownMistake("racecheck", "noBarrier", race, "mirror"),
  ownMistake("initcheck", "load", unwritten, "count_with_gap", "repeat"),
  ownMistake("synccheck", "divergentBarrier", divergence, "meet"),
  libraryMistake("memcheck", strayStore, { find: lastLoop, replace: "byte <= head_dim * width / 8;" }),
  libraryMistake("racecheck", race, { find: lastBarrier, replace: "\n" }),
  // The last byte is left out, which the copy out of private storage reads.
  libraryMistake("initcheck", unwritten, { find: lastLoop, replace: "byte + 1 < head_dim * width / 8;" }),
  libraryMistake("synccheck", divergence, {
    find: lastBarrier,
    replace: `if (thread_index < ${(count * 3) / 4}) ${barrier}\n`,
  }),
];
