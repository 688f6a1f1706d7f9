/**
 * Kernels that do what the processor cannot do, in a process that must live on: `bun faults-child.ts MODE [worker]`.
 * Prints one line of JSON. With `worker`, all of it happens in a Worker.
 */
import { read } from "bun:ffi";
import { readdirSync, readFileSync } from "node:fs";
import { Device, MetalAttentionError } from "../../src/index.ts";

/** How the threads of a kernel run: each faults in thread 77 of 256, after `before` and ahead of `after`. */
const forms = {
  loop: { before: "", after: "" },
  barrier: {
    before: "threadgroup float box[64]; box[local] = float(i); threadgroup_barrier(mem_flags::mem_threadgroup);",
    after: "threadgroup_barrier(mem_flags::mem_threadgroup); out[i] += box[63 - local];",
  },
  lanes: { before: "float sum = simd_sum(float(local));", after: "out[i] += simd_sum(sum);" },
  matrix: {
    before: "simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);",
    after: "simdgroup_multiply(m, m, m); simdgroup_store(m, out + i / 32 * 64, 8);",
  },
} as const;

/** What thread 77 does with `number`, and the number. */
const deeds = {
  wild_write: { does: "out[number] = 1.0f;", number: -(2n ** 38n) },
  wild_read: { does: "out[i] = out[number];", number: -(2n ** 38n) },
  null_write: { does: "*reinterpret_cast<device float *>(ulong(number)) = 1.0f;", number: 0n },
  null_read: { does: "out[i] = *reinterpret_cast<device float *>(ulong(number));", number: 24n },
  no_address: { does: "out[i] = *reinterpret_cast<device float *>(ulong(number));", number: 2n ** 62n },
  protected: { does: "*reinterpret_cast<device float *>(ulong(number)) = 1.0f;", number: readOnlyAddress() },
  stack_array: {
    does: "float a[16]; for (uint k = 0; k < 16; ++k) { a[k] = out[k]; } a[number] = 1.0f; for (uint k = 0; k < 16; ++k) { out[k] = a[k]; }",
    number: -(2n ** 38n),
  },
  large_array: {
    does: "float a[4194304]; for (uint k = 0; k < 16; ++k) { a[k * 999983u % 4194304u] = out[k]; } out[i] = a[number];",
    number: 999983n,
  },
} as const;

type Deed = keyof typeof deeds;
type Form = keyof typeof forms;

const kernels = (Object.keys(deeds) as Deed[]).flatMap((deed) =>
  (Object.keys(forms) as Form[]).map((form) => ({ name: `${deed}_${form}`, deed, form })),
);

const source = `#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#define ARGUMENTS device float *out [[buffer(0)]], constant long &number [[buffer(1)]], \\
  uint i [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]]
${kernels
  .map(({ name, deed, form }) => {
    const { before, after } = forms[form];
    return `kernel void ${name}(ARGUMENTS) { ${before} if (i == 77) { ${deeds[deed].does} } ${after} }`;
  })
  .join("\n")}
kernel void fine_loop(ARGUMENTS) { out[i] = float(i) * 3.0f; }
kernel void fine_lanes(ARGUMENTS) {
  threadgroup float box[64]; box[local] = simd_sum(1.0f); threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = box[63 - local] + float(i);
}
`;

/** An address that may be read and not written. */
function readOnlyAddress(): bigint {
  const line = /^([0-9a-f]+)-[0-9a-f]+ r--p .*\//m.exec(readFileSync("/proc/self/maps", "utf8"));
  return BigInt(`0x${line?.[1]}`);
}

interface Failure {
  readonly code: string;
  readonly message: string;
}

function open() {
  const device = Device.open();
  device.registerSource("faults.metal", source);
  const out = device.tensor("f32", [256]);
  /** Runs kernels as one pass; gives the failure. */
  const run = (...names: string[]): Failure | undefined => {
    using pass = device.pass();
    for (const name of names) {
      const deed = kernels.find((kernel) => kernel.name === name)?.deed;
      using pipeline = device.pipeline(name);
      pass.dispatch(pipeline, {
        buffers: [out],
        bytes: { 1: new BigInt64Array([deed === undefined ? 0n : deeds[deed].number]) },
        grid: 256,
        threads: 64,
      });
    }
    try {
      pass.commitAndWait();
      return undefined;
    } catch (error) {
      if (!(error instanceof MetalAttentionError)) throw error;
      return { code: error.code, message: error.message };
    }
  };
  /** Whether kernels that do nothing wrong give right results. */
  const isFine = (): boolean => {
    const right = (name: string, expected: (i: number) => number) =>
      run(name) === undefined && out.toFloat32Array().every((x, i) => x === expected(i));
    return right("fine_loop", (i) => i * 3) && right("fine_lanes", (i) => i + 32);
  };
  return { device, run, isFine };
}

/** Reads beyond the memory of a WebAssembly module, which JavaScriptCore finds out by a fault. */
function isCaughtByWebAssembly(): boolean {
  const bytes = Uint8Array.of(
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f], // i32 -> i32
    ...[3, 2, 1, 0],
    ...[5, 3, 1, 0, 1], // a page of memory
    ...[7, 8, 1, 4, 0x6c, 0x6f, 0x61, 0x64, 0, 0], // "load"
    ...[10, 9, 1, 7, 0, 0x20, 0, 0x28, 2, 0, 0x0b],
  );
  const { load } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as { load: (at: number) => number };
  for (let i = 0; i < 100; i++) {
    if (load(8) !== 0) return false;
    try {
      load(0x7fff0000);
      return false;
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    }
  }
  return true;
}

/** What a process has that faults could leak. */
function holdings() {
  const rss = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  const maps = readFileSync("/proc/self/maps", "utf8").split("\n").length;
  const [threads, files] = ["task", "fd"].map((folder) => readdirSync(`/proc/self/${folder}`).length);
  return { threads, files, maps, rss };
}

const modes = {
  /** Every kernel once, then those that do nothing wrong. */
  kinds() {
    const { device, run, isFine } = open();
    using _device = device;
    const before = isFine();
    return kernels.map(({ name, deed, form }) => ({ name, deed, form, failure: run(name), fine: before && isFine() }));
  },
  /** Which dispatch of a pass it was. */
  place() {
    const { device, run } = open();
    using _device = device;
    return run("fine_loop", "fine_lanes", "wild_write_loop", "fine_loop");
  },
  many() {
    const { device, run, isFine } = open();
    using _device = device;
    const round = (count: number) => {
      let failures = 0;
      for (let i = 0; i < count; i++) {
        const { name } = kernels[i % kernels.length] as { name: string };
        if (run(name)?.code === "execution") failures++;
      }
      Bun.gc(true);
      return { failures, fine: isFine(), holdings: holdings() };
    };
    return [round(250), ...Array.from({ length: 5 }, () => round(200))];
  },
  /** Bun's handlers, installed before the device's and after. */
  handlers() {
    const answers: boolean[] = [];
    const { device, run, isFine } = open();
    using _device = device;
    for (let i = 0; i < 20; i++) {
      answers.push(run("wild_write_loop")?.code === "execution", run("null_read_barrier")?.code === "execution");
      answers.push(isCaughtByWebAssembly(), isFine());
    }
    return answers;
  },
  /** A fault that is no kernel's, after one that was. */
  crash() {
    const { run } = open();
    console.log(JSON.stringify(run("wild_read_lanes")?.code));
    read.u8(8 as Parameters<typeof read.u8>[0], 0);
    return "lives on";
  },
} as const;

const [mode = "", where] = process.argv.slice(2);
if (where === "worker" && Bun.isMainThread) {
  if (mode === "handlers") isCaughtByWebAssembly();
  const worker = new Worker(import.meta.path, { argv: [mode, where] });
  worker.onmessage = ({ data }) => {
    console.log(JSON.stringify(data));
    worker.terminate();
  };
} else {
  const result = modes[mode as keyof typeof modes]();
  if (where === "worker") postMessage(result);
  else console.log(JSON.stringify(result));
}
