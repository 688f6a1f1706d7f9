/** What the compiler pass makes for processors with AVX-512, run on any: its permutations are functions here. */
import { dlopen, ptr } from "bun:ffi";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChecked } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";
import { compileProgram, expectedOf, laneCounts, programs } from "./programs.ts";

const folder = mkdtempSync(join(tmpdir(), "emulated-"));
afterAll(() => rmSync(folder, { recursive: true }));

const attributes = `"target-cpu"="x86-64-v4" "prefer-vector-width"="512" "target-features"="+avx512f,+avx512bw,+avx512vbmi"`;

/** An element of two registers for each index, of which it looks at as many bits as there are elements. */
function permutation(name: string, bits: number): string {
  const count = 512 / bits;
  const type = `<${count} x i${bits}>`;
  const both = `<${2 * count} x i${bits}>`;
  const places = Array.from({ length: 2 * count }, (_, i) => `i32 ${i}`).join(", ");
  const lines = Array.from(
    { length: count },
    (_, i) => `
  %i${i} = extractelement ${type} %indices, i64 ${i}
  %k${i} = and i${bits} %i${i}, ${2 * count - 1}
  %v${i} = extractelement ${both} %both, i${bits} %k${i}
  %r${i + 1} = insertelement ${type} ${i === 0 ? "poison" : `%r${i}`}, i${bits} %v${i}, i64 ${i}`,
  );
  return `define internal ${type} @${name}(${type} %low, ${type} %indices, ${type} %high) noinline {
  %both = shufflevector ${type} %low, ${type} %high, <${2 * count} x i32> <${places}>${lines.join("")}
  ret ${type} %r${count}
}\n`;
}

const permutations = { qi: 8, hi: 16, d: 32 } as const;

/** A program of `ir/` as LLVM's code for AVX-512, without anything that other processors do not have; and how often it
 * permutes elements of each size. */
async function emulated(name: string): Promise<{ file: string; counts: Record<string, number> }> {
  const source = join(folder, `${name}.ll`);
  const text = await Bun.file(join(import.meta.dir, `ir/${name}.ll`)).text();
  await Bun.write(source, text.replace("%simdgroup) {", `%simdgroup) ${attributes} {`));
  const options = ["-O3", "-march=x86-64-v4", "-S", "-emit-llvm", "-w", `-fpass-plugin=${lanesPlugin()}`];
  let code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
  code = code.replace(
    /"(?:target-cpu|target-features|tune-cpu|prefer-vector-width|min-legal-vector-width)"="[^"]*"/g,
    `"emulated"`,
  );
  // What is hidden from LLVM in a register of 512 bits need not be.
  code = code.replace(
    /(?:tail )?call (<\d+ x i\d+>) asm "", "=v,0[^"]*"\(<\d+ x i\d+> (%[\w.]+)\)[^\n]*/g,
    "freeze $1 $2",
  );
  const counts: Record<string, number> = {};
  for (const [element, bits] of Object.entries(permutations)) {
    const intrinsic = `llvm.x86.avx512.vpermi2var.${element}.512`;
    counts[element] = code.split(`@${intrinsic}(`).length - 1;
    code = code.replace(new RegExp(`^declare [^\n]*@${intrinsic.replaceAll(".", "\\.")}\\([^\n]*\n`, "m"), "");
    if (counts[element] > 0) code += permutation(`permuted.${element}`, bits);
    code = code.replaceAll(`@${intrinsic}(`, `@permuted.${element}(`);
  }
  const file = join(folder, `${name}.emulated.ll`);
  await Bun.write(file, code);
  return { file, counts };
}

if (process.platform === "linux" && process.arch === "x64")
  test.each(Object.keys(programs))("%s", async (name) => {
    const { file, counts } = await emulated(name);
    expect(counts).toEqual({
      qi: /^(?:byte|moved)Tables$/.test(name) ? expect.any(Number) : 0,
      hi: name === "rowLoads" ? expect.any(Number) : 0,
      d: expect.any(Number),
    });
    const program = await compileProgram(name, lanesPlugin(), folder, "x86-64-v3", file);
    for (const lanes of laneCounts)
      expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf(name, lanes) });
  });

if (process.platform === "linux" && process.arch === "x64")
  test("products of matrices, two side by side in a register", async () => {
    const { file } = await emulated("products");
    expect(await Bun.file(file).text()).toContain("@llvm.fma.v16f32");
    const object = join(folder, "products.so");
    await runChecked([
      "clang-19",
      "-O1",
      "-march=x86-64-v3",
      "-shared",
      "-fPIC",
      "-nostdlib",
      "-w",
      file,
      "-o",
      object,
    ]);
    const { symbols, close } = dlopen(object, { kernel: { args: ["ptr", "u32"], returns: "void" } });
    // Small integers, of which all sums are exact.
    const group = Float32Array.from({ length: 5120 }, (_, i) => ((i * 31) % 11) - 5);
    new Uint32Array(group.buffer)[0] = 32;
    const [input, output] = [256, 4096];
    const element = (matrix: number, row: number, column: number) =>
      group[input + matrix * 64 + row * 8 + column] as number;
    const expected = Array.from({ length: 2 * 8 * 64 }, (_, place) => {
      const [r, d, row, column] = [place >> 9, (place >> 6) & 7, (place >> 3) & 7, place & 7];
      let sum = 0;
      for (let k = 0; k < 4; k++)
        for (let j = 0; j < 8; j++) sum += element(4 * r + k, row, j) * element(8 * k + d, j, column);
      return sum;
    });
    symbols.kernel(ptr(group), 0);
    expect(Array.from(group.subarray(output, output + expected.length))).toEqual(expected);
    close();
  });

if (process.platform === "linux" && process.arch === "x64")
  test("products of one left matrix that need each other", async () => {
    const { file } = await emulated("chains");
    const object = join(folder, "chains.so");
    await runChecked([
      "clang-19",
      "-O1",
      "-march=x86-64-v3",
      "-shared",
      "-fPIC",
      "-nostdlib",
      "-w",
      file,
      "-o",
      object,
    ]);
    const { symbols, close } = dlopen(object, { kernel: { args: ["ptr", "u32"], returns: "void" } });
    // Small integers, of which all sums are exact.
    const group = Float32Array.from({ length: 5120 }, (_, i) => ((i * 31) % 11) - 5);
    new Uint32Array(group.buffer)[0] = 32;
    const [left, right] = [Array.from(group.subarray(256, 320)), Array.from(group.subarray(320, 384))];
    const multiply = (a: readonly number[], b: readonly number[]) =>
      Array.from({ length: 64 }, (_, i) => {
        let sum = 0;
        for (let k = 0; k < 8; k++) sum += (a[i - (i % 8) + k] as number) * (b[8 * k + (i % 8)] as number);
        return sum;
      });
    const p = multiply(left, right);
    const q = multiply(p, right);
    const s = multiply(right, left);
    const t = multiply(right, right).map((each, i) => each - (s[i] as number));
    symbols.kernel(ptr(group), 0);
    expect(Array.from(group.subarray(4096, 4096 + 5 * 64))).toEqual([p, q, multiply(left, q), s, t].flat());
    close();
  });
