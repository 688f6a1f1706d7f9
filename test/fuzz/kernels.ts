import { dtypeCodes } from "../helpers/abi.ts";
import type { Fields } from "./structs.ts";

interface Source {
  readonly name: string;
  readonly text: string;
}

const prelude = "#include <metal_stdlib>\nusing namespace metal;\n";

/**
 * Kernels of the fuzz run's own. Whatever the grid, they touch no more than one
 * element of a buffer, which the device checks, so that no dispatch of them
 * with bindings made up at random leaves a buffer.
 */
export const sources: readonly [Source, ...Source[]] = [
  {
    name: "count.metal",
    text: `${prelude}kernel void fuzz_count(device atomic_uint *counter [[buffer(0)]]) {
      atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
    }`,
  },
  {
    name: "pass_on.metal",
    text: `${prelude}kernel void fuzz_pass_on(device float *out [[buffer(0)]], constant float &value [[buffer(1)]],
                             threadgroup float *shared [[threadgroup(0)]],
                             uint index [[thread_index_in_threadgroup]]) {
      if (index == 0) shared[0] = value;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float sum = simd_sum(shared[0]);
      if (index == 0) out[0] = sum;
    }`,
  },
  {
    name: "constant.metal",
    text: `${prelude}constant uint increment [[function_constant(7)]];
    kernel void fuzz_constant(device uint *out [[buffer(0)]], uint index [[thread_position_in_grid]]) {
      if (index == 0) out[0] += increment;
    }`,
  },
];

/** Texts that no device can compile. */
export const invalidSources: readonly [Source, ...Source[]] = [
  { name: "unclosed.metal", text: `${prelude}kernel void fuzz_unclosed(device float *x [[buffer(0)]]) {` },
  { name: "unknown.metal", text: `${prelude}kernel void fuzz_unknown(device nothing *x [[buffer(0)]]) {}` },
  { name: "noise.metal", text: "\u0001}]) \\ #include <<>> /* kernel void \" ' 0x" },
];

export interface FuzzedKernel {
  readonly name: string;
  /** The source that has to be registered first. */
  readonly source?: string;
  readonly constants: readonly Fields[];
  /** How many it takes of: a buffer, bytes, threadgroup memory. */
  readonly bindings?: number;
}

const off = (index: number): Fields => ({ index, dtype: dtypeCodes.bool, components: 1 });

export const kernels: readonly [FuzzedKernel, ...FuzzedKernel[]] = [
  { name: "kv_cache_copy", constants: [off(0), off(1)] },
  { name: "fuzz_count", source: "count.metal", constants: [], bindings: 1 },
  { name: "fuzz_pass_on", source: "pass_on.metal", constants: [], bindings: 3 },
  {
    name: "fuzz_constant",
    source: "constant.metal",
    constants: [{ index: 7, dtype: dtypeCodes.u32, components: 1, "value[0]": 3 }],
    bindings: 1,
  },
];
