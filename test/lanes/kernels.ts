/**
 * Random kernels whose results do not depend on how a SIMD group is run.
 *
 * Statements are kept as a tree, so that a kernel that fails can be shrunk. What the language leaves open is kept out:
 * divisors are not 0, shifts are masked, floats become integers by their bits, values from lanes that are not active
 * are not used. Which lanes take part in a lane function below two branches is open too; below one, all lanes reconverge at
 * a barrier before the next.
 */
import { seededBits } from "../../scripts/lib/random.ts";
import { matrixDeclarations, matrixStatement, matrixSum } from "./matrices.ts";

/** A statement: lines around the statements inside it. */
export interface Statement {
  readonly head: string;
  readonly body?: readonly Statement[];
  readonly otherwise?: readonly Statement[];
  readonly tail?: string;
}

export interface RandomKernel {
  readonly name: string;
  readonly statements: readonly Statement[];
  /** With 8x8 matrices, which need whole SIMD groups. */
  readonly hasMatrices: boolean;
}

const integers = ["uint", "int", "ushort", "short", "uchar", "char", "ulong", "long"] as const;
const floats = ["float", "half", "bfloat"] as const;
type Type = (typeof integers)[number] | (typeof floats)[number];
const variables: readonly (readonly [string, Type])[] = [
  ["a", "uint"],
  ["b", "int"],
  ["c", "ushort"],
  ["d", "short"],
  ["e", "uchar"],
  ["f", "char"],
  ["g", "ulong"],
  ["h", "long"],
  ["p", "float"],
  ["q", "float"],
  ["r", "half"],
  ["s", "bfloat"],
];
/** Elements of the input; a power of two. */
export const inputCount = 256;
/** Words that a thread writes. */
export const outputCount = 16;

/** Elements side by side in rows that four or eight neighbouring lanes own, chosen by number or by what memory says. */
const rowsOfLanes = [
  "(lane >> 2) * 20u + (lane & 3u)",
  "(lane / 8u) * 64u + lane % 8u * 4u",
  "(in[lane >> 3] & 15u) * 16u + (lane & 7u)",
  "((lane & 8u) != 0 ? in[lane / 4u] : lane >> 2) % 16u * 16u + lane % 4u",
] as const;

/** The helpers that all kernels share. */
export const prelude = `
inline uint bits_of(float x) { return x != x ? 0x7fc00000u : as_type<uint>(x); }
inline float number_of(uint x) { return (float)((int)(x & 0xffffu) - 0x8000) * 0.015625f; }
inline uint left_from_inside(uint n, uint step, uint key) {
  uint sum = 0;
  for (uint turn = 0;; ++turn) {
    for (;;) {
      if (n % (key % 3u + 2u) == 0u && turn < 5u) break;
      sum += n ^ turn;
      n -= min(n, step + 1u);
      if (n < 4u || turn > 6u) return sum;
    }
    n = (n + key) & 63u;
    sum = sum * 3u + 1u;
  }
}
inline bool is_active(uint lane) { return ((ulong)simd_active_threads_mask() >> (lane & 31u) & 1u) != 0; }
`;

/** Whether lanes have to be together for the statement. */
function asksLanes({ head, body = [], otherwise = [] }: Statement): boolean {
  return /simd_|quad_|is_active/.test(head) || body.some(asksLanes) || otherwise.some(asksLanes);
}

class KernelGenerator {
  private loops = 0;
  private canReturn: boolean;
  private divergent = 0;

  constructor(
    readonly below: (count: number) => number,
    private readonly withBarriers: boolean,
    private readonly hasMatrices: boolean,
    private readonly hasOddLoops: boolean,
  ) {
    this.canReturn = !withBarriers && !hasMatrices;
  }

  private pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
  private chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  /** An integer expression of type uint. */
  private integer(depth: number): string {
    if (depth <= 0 || this.chance(15)) {
      return this.pick([
        "lane",
        "i",
        "local",
        `${this.below(40)}u`,
        "in[lane]",
        "uni",
        ...variables
          .filter(([, type]) => type !== "half" && type !== "bfloat" && type !== "float")
          .map(([n]) => `(uint)${n}`),
      ]);
    }
    const x = this.integer(depth - 1);
    const y = this.integer(depth - 1);
    switch (this.below(13)) {
      case 0:
        return `(${x} + ${y})`;
      case 1:
        return `(${x} - ${y})`;
      case 2:
        return `(${x} * ${y})`;
      case 3:
        return `(${x} ${this.pick(["&", "|", "^"])} ${y})`;
      case 4:
        return `(${x} ${this.pick(["/", "%"])} ((${y} & 31u) + 1u))`;
      case 5:
        return `(${x} ${this.pick(["<<", ">>"])} (${y} & 7u))`;
      case 6:
        return `(uint)((int)${x} ${this.pick(["/", "%", ">>"])} (int)((${y} & 7u) + 1u))`;
      case 7:
        return `in[${x} & ${inputCount - 1}u]`;
      case 8:
        return `(${this.condition(depth - 1)} ? ${x} : ${y})`;
      case 9:
        return `t[${x} & 7u]`;
      case 10:
        return `bits_of(${this.number(depth - 1)})`;
      case 11:
        return `(uint)(${this.pick(integers)})${x}`;
      default:
        return `in[(${this.pick(["i", "lane", "local", "lane * 2u", "lane * 4u + 1u", "i - 3u", ...rowsOfLanes])} + ${this.pick(["0u", "uni", "5u"])}) & ${inputCount - 1}u]`;
    }
  }

  number(depth: number): string {
    if (depth <= 0 || this.chance(15)) {
      return this.pick(["p", "q", "(float)r", "(float)s", "1.5f", "-0.25f", "number_of(in[lane])"]);
    }
    const x = this.number(depth - 1);
    const y = this.number(depth - 1);
    switch (this.below(8)) {
      case 0:
        return `(${x} + ${y})`;
      case 1:
        return `(${x} - ${y})`;
      case 2:
        return `(${x} * ${y})`;
      case 3:
        return `(${x} / (fabs(${y}) + 1.0f))`;
      case 4:
        return `fma(${x}, ${y}, p)`;
      case 5:
        return `(${this.condition(depth - 1)} ? ${x} : ${y})`;
      case 6:
        return `(float)((${this.pick(["half", "bfloat"])})${x})`;
      default:
        return `number_of(${this.integer(depth - 1)})`;
    }
  }

  condition(depth: number): string {
    switch (this.below(6)) {
      case 0:
        return `(lane & ${this.pick(["1u", "3u", "8u", "16u"])}) != 0`;
      case 1:
        return `${this.number(depth)} < ${this.number(depth)}`;
      case 2:
        return `(${this.integer(depth)} & 1u) == 0`;
      case 3:
        return `(int)${this.integer(depth)} > (int)${this.integer(depth)}`;
      case 4:
        return `(uni & ${1 << this.below(4)}u) != 0`;
      default:
        return `${this.integer(depth)} % 3u == ${this.below(3)}u`;
    }
  }

  private assignment(): Statement {
    const [name, type] = this.pick(variables);
    if (type === "float" || type === "half" || type === "bfloat")
      return { head: `${name} = (${type})${this.number(3)};` };
    return { head: `${name} = (${type})${this.integer(3)};` };
  }

  private laneFunction(): Statement {
    const x = this.integer(2);
    const integer = this.pick(["a", "b", "c", "d", "e", "f", "g", "h"]);
    const [, own] = variables.find(([name]) => name === integer) ?? ["", "uint"];
    // Lanes exchange no numbers of 64 bits.
    const type = own === "ulong" ? "uint" : own === "long" ? "int" : own;
    const value = `(${type})${x}`;
    switch (this.below(12)) {
      case 0:
        return {
          head: `${integer} = simd_${this.pick(["sum", "product", "and", "or", "xor", "min", "max"])}(${value});`,
        };
      case 1:
        return {
          head: `${integer} = simd_prefix_${this.pick(["inclusive", "exclusive"])}_${this.pick(["sum", "product"])}(${value});`,
        };
      case 2:
        return { head: `p = simd_${this.pick(["sum", "min", "max"])}(${this.number(2)});` };
      case 3:
        return { head: `r = simd_${this.pick(["sum", "max", "min"])}((half)${this.number(1)});` };
      case 4:
        return { head: `s = simd_${this.pick(["sum", "max", "prefix_inclusive_sum"])}((bfloat)${this.number(1)});` };
      case 5: {
        const form = this.pick([
          "w",
          "lane ^ 5u",
          "lane ^ (w & 31u)",
          "lane + w",
          "uni",
          "(lane & ~3u) | 1u",
          "lane >> 2",
        ]);
        return {
          head: `{ const uint w = ${x}, from = (${form}) & 31u; const bool here = is_active(from); const ${type} v = simd_shuffle((${type})${this.integer(1)}, (ushort)from); if (here) { ${integer} = v; } }`,
        };
      }
      case 6:
        return { head: `a = (uint)(ulong)simd_ballot(${this.condition(2)});` };
      case 7:
        return { head: `if (simd_any(${this.condition(2)})) { b ^= 21; }` };
      case 8:
        return { head: `if (simd_all(${this.condition(1)})) { b += 3; }` };
      case 9:
        return { head: `if (simd_is_first()) { a += 5u; }` };
      case 10:
        return { head: `q = quad_${this.pick(["sum", "max", "min"])}(${this.number(1)});` };
      default:
        return { head: `q = simd_prefix_exclusive_sum(${this.number(1)});` };
    }
  }

  private block(depth: number, size: number): Statement[] {
    return Array.from({ length: 1 + this.below(size) }, () => this.statement(depth));
  }

  /** One that all lanes agree on. */
  private uniformCondition(): string {
    return `(uni & ${1 << this.below(4)}u) ${this.pick(["==", "!="])} 0`;
  }

  /** Inside of what lanes part over, where `isUniform` does not hold. */
  private inside(isUniform: boolean, depth: number, size: number): Statement[] {
    this.divergent += isUniform ? 0 : 1;
    const body = this.block(depth - 1, size);
    this.divergent -= isUniform ? 0 : 1;
    return body;
  }

  /** A loop that is left from one inside of it, or one that lanes enter at two places. */
  private oddLoop(depth: number): Statement {
    const reconverge = this.divergent > 0 ? "" : " threadgroup_barrier(mem_flags::mem_none);";
    if (this.chance(50)) {
      const head = `a = left_from_inside(${this.integer(2)} & 63u, ${this.integer(1)} & 7u, ${this.integer(1)});`;
      return { head: head + reconverge };
    }
    const k = `k${this.loops++}`;
    // Which lanes are together inside is open.
    this.divergent += 2;
    const [first, second] = [this.block(depth - 1, 2), this.block(depth - 1, 2)];
    this.divergent -= 2;
    return {
      head: `{ uint ${k} = ${this.integer(1)} & 7u; switch (${this.condition(1)} ? 1 : 0) { case 0: do {`,
      body: [...first, { head: "case 1:;" }, ...second],
      tail: `} while (${k}-- > 0u); } }${reconverge}`,
    };
  }

  private statement(depth: number): Statement {
    const kind = this.below(100);
    const isUniform = this.chance(35);
    if (this.hasMatrices && this.divergent === 0 && this.chance(50)) return matrixStatement(this);
    // Where all lanes reconverge.
    const reconverge = isUniform || this.divergent > 0 ? "" : " threadgroup_barrier(mem_flags::mem_none);";
    if (this.hasOddLoops && depth > 0 && this.chance(15)) return this.oddLoop(depth);
    if (depth > 0 && kind < 22) {
      const body = this.inside(isUniform, depth, 4);
      const otherwise = this.chance(50) ? this.inside(isUniform, depth, 3) : undefined;
      const condition = isUniform ? this.uniformCondition() : this.condition(2);
      return { head: `if (${condition}) {`, body, ...(otherwise ? { otherwise } : {}), tail: `}${reconverge}` };
    }
    if (depth > 0 && kind < 38) {
      const k = `k${this.loops++}`;
      const body = this.inside(isUniform, depth, 4);
      for (const [leave, percent] of [
        ["break", 30],
        ["continue", 20],
      ] as const) {
        if (!this.chance(percent) || (leave === "continue" && !isUniform && body.some(asksLanes))) continue;
        const condition = isUniform ? this.uniformCondition() : this.condition(1);
        body.splice(this.below(body.length + 1), 0, { head: `if (${condition}) { ${leave}; }` });
      }
      const start = isUniform ? "0u" : this.pick(["0u", "lane & 3u"]);
      const end = isUniform ? this.pick(["7u", "(uni & 7u)"]) : this.pick([`(${this.integer(2)} & 7u)`, "(lane & 5u)"]);
      return { head: `for (uint ${k} = ${start}; ${k} < ${end}; ++${k}) { a += ${k};`, body, tail: `}${reconverge}` };
    }
    if (kind < 50 && this.divergent < 2) return this.laneFunction();
    if (kind < 56) return { head: `t[${this.integer(2)} & 7u] ${this.pick(["=", "+=", "^="])} ${this.integer(2)};` };
    if (kind < 62)
      return {
        head: `out[i * ${outputCount}u + ${this.pick(["0u", "1u", "2u", `(${this.integer(1)} & 3u)`])}] = ${this.integer(2)};`,
      };
    if (kind < 65 && this.canReturn && this.divergent > 0)
      return { head: `if (${this.condition(2)}) { out[i * ${outputCount}u + 3u] = a; return; }` };
    if (kind < 68) {
      // Operations of one kind on a counter: their order does not show.
      const operation = this.below(3);
      return {
        head: `atomic_fetch_${["add", "xor", "max"][operation]}_explicit(counters + ((${this.integer(1)} & 7u) + ${8 * operation}u), ${this.integer(1)}, memory_order_relaxed);`,
      };
    }
    if (kind < 74 && this.withBarriers && this.divergent === 0) {
      return {
        head: `threadgroup_barrier(mem_flags::mem_threadgroup); box[local] = ${this.integer(2)}; threadgroup_barrier(mem_flags::mem_threadgroup); a ^= box[(local + ${this.integer(1)} % 7u) % size]; threadgroup_barrier(mem_flags::mem_threadgroup);`,
      };
    }
    return this.assignment();
  }

  kernel(name: string): RandomKernel {
    const { hasMatrices } = this;
    return { name, statements: this.block(3, hasMatrices ? 10 : 6), hasMatrices };
  }
}

export function randomKernel(name: string, seed: number): RandomKernel {
  const bits = seededBits(seed);
  const below = (count: number): number => bits() % count;
  // Two seeds in seven, so that the others keep their kernels.
  const hasOddLoops = seed % 7 === 4 || seed % 7 === 5;
  return new KernelGenerator(below, below(3) === 0, below(4) === 0, hasOddLoops).kernel(name);
}

function text(statements: readonly Statement[], indent: string): string {
  return statements
    .map(({ head, body, otherwise, tail }) => {
      const inner = body === undefined ? "" : `\n${text(body, `${indent}  `)}`;
      const other = otherwise === undefined ? "" : `\n${indent}} else {\n${text(otherwise, `${indent}  `)}`;
      return `${indent}${head}${inner}${other}${tail === undefined ? "" : `\n${indent}${tail}`}`;
    })
    .join("\n");
}

/** The body of a kernel: what is between its braces. */
export function bodyText({ statements, hasMatrices }: RandomKernel): string {
  const stored = variables.map(([name, type], index) => {
    const isFloat = type === "float" || type === "half" || type === "bfloat";
    return `out[i * ${outputCount}u + ${4 + index}u] = ${isFloat ? `bits_of((float)${name})` : `(uint)${name} ^ (uint)((ulong)${name} >> 32)`};`;
  });
  const initial = variables.map(([name, type], index) =>
    type === "float" || type === "half" || type === "bfloat"
      ? `${type} ${name} = (${type})number_of(in[(i + ${index}u) & ${inputCount - 1}u]);`
      : `${type} ${name} = (${type})in[(i * ${index}u + ${index}u) & ${inputCount - 1}u];`,
  );
  return `  uint t[8]; for (uint k = 0; k < 8u; ++k) { t[k] = in[k] + lane; }
  const uint uni = in[7];
  ${initial.join("\n  ")}
${hasMatrices ? `${matrixDeclarations}\n` : ""}${text(statements, "  ")}
${hasMatrices ? `${matrixSum}\n` : ""}  for (uint k = 0; k < 8u; ++k) { a = a * 31u + t[k]; }
  ${stored.join("\n  ")}`;
}

/** A kernel as Metal source. */
export function kernelText(kernel: RandomKernel): string {
  return `kernel void ${kernel.name}(device uint *out [[buffer(0)]], const device uint *in [[buffer(1)]], device atomic_uint *counters [[buffer(2)]],
    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]], uint local [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  threadgroup uint box[1024]; box[local] = 0;
${bodyText(kernel)}
}`;
}

/**
 * Leaves out statements, or what is around others, as long as `fails` holds of what is left.
 * `fails` is asked about whole kernels.
 */
export async function shrink(
  statements: readonly Statement[],
  fails: (statements: readonly Statement[]) => Promise<boolean> | boolean,
): Promise<readonly Statement[]> {
  let list = statements;
  for (let index = 0; index < list.length; ) {
    const before = list.slice(0, index);
    const after = list.slice(index + 1);
    const each = list[index] as Statement;
    const inside = [...(each.body ?? []), ...(each.otherwise ?? [])];
    if (await fails([...before, ...after])) {
      list = [...before, ...after];
      continue;
    }
    if (inside.length > 0 && (await fails([...before, ...inside, ...after]))) {
      list = [...before, ...inside, ...after];
      continue;
    }
    let kept = each;
    if (kept.otherwise !== undefined) {
      const { otherwise, ...rest } = kept;
      if (await fails([...before, rest, ...after])) kept = rest;
      else
        kept = {
          ...kept,
          otherwise: await shrink(otherwise, (next) => fails([...before, { ...kept, otherwise: next }, ...after])),
        };
    }
    if (kept.body !== undefined) {
      const outer = kept;
      kept = {
        ...kept,
        body: await shrink(kept.body, (next) => fails([...before, { ...outer, body: next }, ...after])),
      };
    }
    list = [...before, kept, ...after];
    index += 1;
  }
  return list;
}
