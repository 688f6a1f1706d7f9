/** The compiler pass alone: small kernels in LLVM's language, run for one SIMD group with known results. */
import { dlopen, ptr } from "bun:ffi";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChecked, run as runProgram } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";

const folder = mkdtempSync(join(tmpdir(), "lanes-"));
afterAll(() => rmSync(folder, { recursive: true }));

const width = 32;
/** A kernel finds the number of lanes at the beginning of its group, its input 64 bytes on, its output 1,024. */
const inputAt = 64 / 4;
const outputAt = 1024 / 4;
const input = Int32Array.from({ length: width }, (_, lane) => (lane * 37) % 29);

async function compiled(name: string): Promise<(group: Int32Array) => void> {
  const object = join(folder, `${name}.so`);
  const source = join(import.meta.dir, "ir", `${name}.ll`);
  await runChecked([
    "clang-19",
    "-O3",
    "-march=native",
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-w",
    `-fpass-plugin=${lanesPlugin()}`,
    source,
    "-o",
    object,
  ]);
  const { symbols } = dlopen(object, { kernel: { args: ["ptr", "u32"], returns: "void" } });
  return (group) => symbols.kernel(ptr(group), 0);
}

/** The output words of `lanes` lanes; -9 where nothing is written. */
async function run(name: string, lanes: number): Promise<number[]> {
  const group = new Int32Array(outputAt + width).fill(-9);
  group[0] = lanes;
  group.set(input, inputAt);
  (await compiled(name))(group);
  return Array.from(group.subarray(outputAt));
}

const perLane = (lanes: number, of: (value: number, lane: number) => number): number[] =>
  Array.from({ length: width }, (_, lane) => (lane < lanes ? of(input[lane] as number, lane) : -9));

const isLinux = process.platform === "linux";

if (isLinux)
  describe.each([32, 40, 19, 1])("%i lanes", (lanes) => {
    const there = Math.min(lanes, width);
    test("branches", async () => {
      const expected = perLane(there, (value) => (value <= 10 ? -1 : value % 2 === 1 ? value * 3 : value));
      expect(await run("branches", lanes)).toEqual(expected);
    });
    test("loops", async () => {
      const expected = perLane(there, (limit) => {
        let sum = 0;
        for (let k = 0; k < limit; k++) {
          sum += k * k;
          if (sum > 100) return 0 - k;
        }
        return sum;
      });
      expect(await run("loops", lanes)).toEqual(expected);
    });
    test("a loop that decides at its end", async () => {
      expect(await run("rotated", lanes)).toEqual(perLane(there, (limit) => 3 * Math.max(limit, 1)));
    });
    test("one place, a sum, a ballot", async () => {
      const active = Array.from({ length: there }, (_, lane) => lane).filter((lane) => (input[lane] as number) > 10);
      const [last, sum, ballot] = await run("uniform", lanes);
      const lane = active.at(-1);
      if (lane === undefined) {
        expect([last, sum, ballot]).toEqual([-9, -9, -9]);
        return;
      }
      expect(last).toBe(input[lane] as number);
      expect(sum).toBe(active.reduce((total, each) => total + (input[each] as number), 0));
      expect(ballot).toBe(active.filter((each) => each % 2 === 0).reduce((bits, each) => bits | (1 << each), 0));
    });
    test("an index that wraps between lanes", async () => {
      const expected = perLane(there - 5, (value) => value);
      expect(await run("wrap", lanes)).toEqual(expected);
    });
  });

if (isLinux)
  test("what the pass leaves alone is refused with the kernel's name and the reason", async () => {
    const source = join(folder, "refused.ll");
    await Bun.write(
      source,
      `declare void @sm_kernel(i32, i1)
     define void @kernel(ptr %group, i32 %simdgroup) {
       %way = load ptr, ptr %group
       call void @sm_kernel(i32 32, i1 true)
       call void %way()
       ret void
     }`,
    );
    const { status, errors } = await runProgram([
      "clang-19",
      "-O3",
      "-c",
      `-fpass-plugin=${lanesPlugin()}`,
      source,
      "-o",
      join(folder, "refused.o"),
    ]);
    expect(status).not.toBe(0);
    expect(errors).toContain("softmetal: kernel 'kernel' cannot run as vectors: a call through a pointer");
  });
