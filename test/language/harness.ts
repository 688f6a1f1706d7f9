/**
 * Runs small kernels whose results are known without running them: computed
 * in the test by other means, never recorded from a run.
 *
 * A suite is one shader source. Each case is one kernel of it, made from a few
 * statements, so that a hundred cases cost one compilation.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  Device,
  type DispatchForm,
  type DispatchOptions,
  type Extent,
  type PipelineOptions,
  type Tensor,
} from "../../src/index.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { codes, type Format, numberOf } from "./formats.ts";

/** Element types of buffers; half and bfloat travel as their 16 bits. */
const elements = {
  float: Float32Array,
  half: Uint16Array,
  bfloat: Uint16Array,
  char: Int8Array,
  uchar: Uint8Array,
  short: Int16Array,
  ushort: Uint16Array,
  int: Int32Array,
  uint: Uint32Array,
  long: BigInt64Array,
  ulong: BigUint64Array,
} as const;

export type Element = keyof typeof elements;
export type Values = readonly (number | bigint)[];

/** Values of one buffer, by element type. */
export interface Input {
  readonly type: Element;
  readonly values: Values;
}

export interface Case {
  readonly name: string;
  /**
   * Statements of the kernel. In scope: `out` (device, type `out`), inputs `a`,
   * `b`, `c`, `d` (const device), `i` (uint, thread position in the grid),
   * `lane`, `group`, `local` (uint: lane, SIMD group, thread in threadgroup).
   */
  readonly code: string;
  readonly out: Element;
  readonly inputs?: readonly Input[];
  readonly expected: Values;
  /** Largest distance allowed, in units of the last place of float; 0 unless given. */
  readonly ulps?: number;
  /** Threads in the grid; as many as expected values unless given. */
  readonly threads?: number;
  /** Threads per threadgroup; all of them (at most 1,024) unless given. */
  readonly threadgroup?: number;
  /** Bytes of dynamic threadgroup memory, in scope as `threadgroup float *shared`. */
  readonly shared?: number;
}

/** A case that is a kernel of its own in a source of its own. */
export interface KernelCase {
  readonly name: string;
  /** Host name of the kernel, which writes `[[buffer(0)]]`. */
  readonly kernel: string;
  readonly out: Element;
  readonly expected: Values;
  /** Buffers from index 1 on. */
  readonly inputs?: readonly Input[];
  /** First values of the output buffer; zeros unless given. */
  readonly initial?: Values;
  readonly bytes?: DispatchOptions["bytes"];
  readonly constants?: PipelineOptions["constants"];
  readonly threadgroupMemory?: DispatchOptions["threadgroupMemory"];
  readonly grid: Extent;
  readonly threads: Extent;
  /** What `grid` counts; threads unless given. */
  readonly form?: DispatchForm;
  /** As in `Case`. */
  readonly ulps?: number;
  /** Largest relative or absolute distance allowed, in place of `ulps`. */
  readonly relative?: number;
  readonly absolute?: number;
  /** What the words of a half or bfloat output stand for; needed to allow a distance. */
  readonly format?: Format;
  /** What of the output is compared, where places in it depend on the order of threads; all of it as it is unless given. */
  readonly arrange?: (output: Values) => Values;
  /** Index of the output buffer, with the inputs from 0 on around it; 0 unless given. */
  readonly outIndex?: number;
}

/** Cases of all files of the process: bun loads this module once. counts.ts prints them at the end. */
export const counts = { held: 0, ran: 0 };

/** The device of the language tests; one for all suites of a process. */
let opened: Device | undefined;
export function device(): Device {
  opened ??= Device.open();
  return opened;
}

/** Counts a case of another form than `Case` as held, and as run when the function it returns is called. */
export function countCase(): () => void {
  counts.held += 1;
  return () => {
    counts.ran += 1;
  };
}

const inputNames = ["a", "b", "c", "d"];

/** The source of a suite: the prelude, then one kernel a case. */
export function suiteSource(prelude: string, cases: readonly Case[], prefix: string): string {
  const kernels = cases.map((each, index) => {
    const inputs = (each.inputs ?? []).map(
      ({ type }, k) => `const device ${type} *${inputNames[k]} [[buffer(${k + 1})]],`,
    );
    const shared = each.shared === undefined ? "" : "threadgroup float *shared [[threadgroup(0)]],";
    return `
kernel void ${prefix}_${index}(device ${each.out} *out [[buffer(0)]], ${inputs.join(" ")} ${shared}
    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]], uint local [[thread_index_in_threadgroup]]) {
  (void)i; (void)lane; (void)group; (void)local;
  ${each.code}
}`;
  });
  return `#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n${prelude}\n${kernels.join("\n")}\n`;
}

/** Declares one test a case. `name` must be an identifier, unique among suites. */
export function languageSuite(name: string, prelude: string, cases: readonly Case[]): void {
  kernelSuite(
    name,
    suiteSource(prelude, cases, name),
    cases.map((each, index) => kernelOf(each, `${name}_${index}`)),
  );
}

/** A case of statements as one of the kernel that was made of them. */
export function kernelOf(each: Case, kernel: string): KernelCase {
  const { threads = each.expected.length, threadgroup, shared, ...rest } = each;
  return {
    ...rest,
    kernel,
    grid: threads,
    threads: threadgroup ?? Math.min(threads, 1024),
    ...(shared === undefined ? {} : { threadgroupMemory: { 0: shared } }),
  };
}

/** Milliseconds that all kernels of a suite may take to compile. */
const compileLimit = isOtherGpu ? 600_000 : 120_000;

/** Declares one test a case, on kernels of `source`. */
export function kernelSuite(name: string, source: string, cases: readonly KernelCase[]): void {
  counts.held += cases.length;
  describe(name, () => {
    // The first pipeline compiles the whole suite, or each its kernel where the source is long or a GPU's driver compiles.
    beforeAll(() => {
      device().registerSource(`${name}.metal`, source);
      for (const { kernel, constants = [] } of cases) {
        device()
          .pipeline(kernel, { constants: [...constants] })
          .dispose();
      }
    }, compileLimit);
    let ran = 0;
    for (const each of cases) {
      test(each.name, () => {
        compare(run(device(), each), each);
        ran += 1;
        counts.ran += 1;
      });
    }
    afterAll(() => {
      expect(ran).toBe(cases.length);
    });
  });
}

function bytesOf({ type, values }: Input): Uint8Array {
  const array = new elements[type](values.length);
  values.forEach((value, k) => {
    array[k] = value;
  });
  return new Uint8Array(array.buffer);
}

/** Whether every kernel is meant to run one thread at a time. */
const isReference = process.env["SOFTMETAL_EXECUTOR"] === "threads";

/** The output buffer after one dispatch of a case on `target`. */
export function run(target: Device, each: KernelCase): Values {
  const { out: type, expected, initial, bytes, threadgroupMemory, grid, threads, form } = each;
  using pipeline = target.pipeline(each.kernel, { constants: [...(each.constants ?? [])] });
  // The compiler pass declines none of them.
  if (!isReference) expect(pipeline.executor).not.toStartWith("threads");
  using out = target.tensor("u8", [Math.max(1, expected.length) * elements[type].BYTES_PER_ELEMENT]);
  if (initial !== undefined) out.bytes.set(bytesOf({ type, values: initial }));
  const inputs = (each.inputs ?? []).map((input) => {
    const data = bytesOf(input);
    const tensor = target.tensor("u8", [data.length]);
    tensor.bytes.set(data);
    return tensor;
  });
  const { outIndex = 0 } = each;
  const buffers: Record<number, Tensor> = { [outIndex]: out };
  for (const [k, input] of inputs.entries()) buffers[k < outIndex ? k : k + 1] = input;
  using pass = target.pass();
  pass.dispatch(pipeline, {
    buffers,
    grid,
    threads,
    ...(bytes === undefined ? {} : { bytes }),
    ...(form === undefined ? {} : { form }),
    ...(threadgroupMemory === undefined ? {} : { threadgroupMemory }),
  });
  pass.commitAndWait();
  const result = out.bytes.slice();
  for (const input of inputs) input.dispose();
  return Array.from(new elements[type](result.buffer) as unknown as ArrayLike<number | bigint>);
}

/** Fails at the first value that is not the one expected, nor as near as the case allows. */
export function compare(output: Values, each: KernelCase): void {
  const actual = each.arrange?.(output) ?? output;
  each.expected.forEach((want, k) => {
    const got = actual[k] as number | bigint;
    const wanted = each.out === "float" ? Math.fround(Number(want)) : want;
    if (!Object.is(got, wanted) && !isNear(got, wanted, each)) {
      expect({ index: k, value: got }).toEqual({ index: k, value: wanted });
    }
  });
}

/** Whether a case allows the distance of two values that are not the same. */
function isNear(got: number | bigint, wanted: number | bigint, each: KernelCase): boolean {
  const { out, format, ulps = 0, relative = 0, absolute = 0 } = each;
  const value = (x: number | bigint): number => (format === undefined ? Number(x) : numberOf(format, Number(x)));
  const gap = Math.abs(value(got) - value(wanted));
  if (out === "float" && ulps > 0 && distance(Number(got), Number(wanted)) <= ulps) return true;
  return (relative > 0 && gap <= relative * Math.abs(value(wanted))) || (absolute > 0 && gap <= absolute);
}

const bits = new Int32Array(1);
const view = new Float32Array(bits.buffer);

/** A float's place in the order of all floats. */
function rank(value: number): number {
  view[0] = value;
  const word = bits[0] as number;
  return word < 0 ? -(word & 0x7fffffff) : word;
}

/** Steps from one float to another; NaN is next to NaN only. */
export function distance(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b) ? 0 : Number.POSITIVE_INFINITY;
  return Math.abs(rank(a) - rank(b));
}

/** Inputs as float. */
export function floats(values: readonly number[]): Input {
  return { type: "float", values };
}
export function ints(values: readonly number[]): Input {
  return { type: "int", values };
}
export function uints(values: readonly number[]): Input {
  return { type: "uint", values };
}

/** Inputs as half or bfloat, by their bits. */
export function words(type: "half" | "bfloat", values: readonly number[]): Input {
  return { type, values };
}
/** Values rounded to a format. */
export function encoded(format: Format, values: readonly number[]): Input {
  return words(format.name, codes(format, values));
}

/** 0 to count - 1 through a function. */
export function range<T>(count: number, of: (k: number) => T): T[] {
  return Array.from({ length: count }, (_, k) => of(k));
}
