/** Statements of random kernels about 8x8 matrices: arrays of them, in loops, by elements, in branches. */
import type { Statement } from "./kernels.ts";

/** What the statements take from the kernel's generator. */
export interface Expressions {
  below(count: number): number;
  number(depth: number): string;
  condition(depth: number): string;
}

/** In front of a kernel's statements: matrices of each type, and threadgroup memory to load them from. */
export const matrixDeclarations = `  threadgroup float tile[256];
  threadgroup half narrow[128];
  threadgroup float mine[1024 / 32][64];
  for (uint k = local; k < 256u; k += size) { tile[k] = number_of(in[k & 255u]) * 0.0625f; }
  for (uint k = local; k < 128u; k += size) { narrow[k] = (half)(number_of(in[(k + 9u) & 255u]) * 0.0625f); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 m[4];
  simdgroup_half8x8 n[2];
  simdgroup_bfloat8x8 z = simdgroup_bfloat8x8((bfloat)0.5f);
  for (uint k = 0; k < 4u; ++k) { m[k] = simdgroup_float8x8(1.0f + (float)k); }
  for (uint k = 0; k < 2u; ++k) { simdgroup_load(n[k], narrow + 64u * k, 8); }`;

/** After them: what the matrices have come to. */
export const matrixSum = `  for (uint k = 0; k < 4u; ++k) { p = p * 0.5f + m[k].thread_elements()[k & 1u]; }
  q += (float)n[0].thread_elements()[1] + (float)z.thread_elements()[0];`;

/** A statement where all lanes are together; in a loop of matrices `index` counts. */
export function matrixStatement(from: Expressions, index?: string): Statement {
  const pick = <T>(items: readonly T[]): T => items[from.below(items.length)] as T;
  const place = () => pick([`${from.below(4)}`, "(uni & 3u)", ...(index === undefined ? [] : [`(${index} & 3u)`])]);
  const factor = () => pick([`m[${place()}]`, `m[${place()}]`, "n[0]", `n[${from.below(2)}]`, "z"]);
  const a = place();
  switch (from.below(index === undefined ? 12 : 10)) {
    case 0:
      return {
        head: `simdgroup_load(m[${a}], tile + ${from.below(128)}u, ${pick([8, 16])}, ulong2(0, 0), ${pick(["true", "false", "uni != 3u"])});`,
      };
    case 1:
      return {
        head: `simdgroup_load(n[${from.below(2)}], narrow + ${from.below(64)}u, 8, ulong2(0, 0), ${pick(["true", "false"])});`,
      };
    case 2:
    case 3:
    case 4:
      return {
        head: `simdgroup_multiply_accumulate(m[${a}], ${factor()}, ${factor()}, m[${pick([a, a, place()])}]);`,
      };
    case 5: {
      const left = factor();
      return {
        head: `simdgroup_multiply_accumulate(m[${a}], ${left}, n[0], m[${a}]); simdgroup_multiply_accumulate(m[${place()}], ${left}, n[1], m[${place()}]);`,
      };
    }
    case 6:
      return { head: `m[${a}].thread_elements() = m[${a}].thread_elements() * ${from.number(1)};` };
    case 7: {
      // Not in a branch: threads that part there do not find their elements.
      const element = `m[${a}].thread_elements()[${from.below(2)}]`;
      return { head: `{ const float x = ${element}; ${element} = ${from.condition(1)} ? ${from.number(1)} : x; }` };
    }
    case 8:
      return { head: `p = clamp(m[${a}].thread_elements()[${from.below(2)}], -64.0f, 64.0f);` };
    case 9:
      return {
        head: `simdgroup_store(m[${a}], &mine[local / 32u][0], 8, ulong2(0, 0), ${pick(["true", "false"])}); simdgroup_barrier(mem_flags::mem_threadgroup); q = mine[local / 32u][(lane * 3u) & 63u]; simdgroup_barrier(mem_flags::mem_threadgroup);`,
      };
    default: {
      const counter = `j${from.below(1000)}`;
      const body = Array.from({ length: 1 + from.below(4) }, () => matrixStatement(from, counter));
      return {
        head: `for (uint ${counter} = 0; ${counter} < ${pick(["4u", "8u", "16u", "(uni & 7u)"])}; ++${counter}) {`,
        body,
        tail: "}",
      };
    }
  }
}
