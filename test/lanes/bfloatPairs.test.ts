/** Pairs of bfloats, rounded at once: results of arithmetic, and numbers as they were loaded. */
import { dlopen, ptr } from "bun:ffi";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertBits } from "../../src/reference/rounding.ts";
import { runChecked } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";

const folder = mkdtempSync(join(tmpdir(), "pairs-"));
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * A function of 32 numbers %a, 32 further ones %b and 32 times a number %factors: x and y, which `round` makes words of,
 * %wNAME with the bits of a bfloat in their lower halves, become the lower and the upper halves of 32 words.
 */
const program = (name: string, x: string, y: string, round: (number: string) => string) => `
define void @${name}(ptr %from, ptr %to, float %factor) {
  %one = insertelement <32 x float> poison, float %factor, i64 0
  %factors = shufflevector <32 x float> %one, <32 x float> poison, <32 x i32> zeroinitializer
  %more = getelementptr <32 x float>, ptr %from, i64 1
  %a = load <32 x float>, ptr %from, align 4
  %b = load <32 x float>, ptr %more, align 4
  %x = ${x}
  %y = ${y}${round("x")}${round("y")}
  %upper = shl <32 x i32> %wy, splat (i32 16)
  %words = or <32 x i32> %upper, %wx
  store <32 x i32> %words, ptr %to, align 4
  ret void
}
`;

/** By LLVM's own instruction. */
const truncated = (number: string) => `
  %r${number} = fptrunc <32 x float> %${number} to <32 x bfloat>
  %b${number} = bitcast <32 x bfloat> %r${number} to <32 x i16>
  %w${number} = zext <32 x i16> %b${number} to <32 x i32>`;

/** By integers, where it is asked whether it or the factor is NaN. */
const askingOfBoth = (number: string) => `
  %b${number} = bitcast <32 x float> %${number} to <32 x i32>
  %s${number} = lshr <32 x i32> %b${number}, splat (i32 16)
  %l${number} = and <32 x i32> %s${number}, splat (i32 1)
  %h${number} = add <32 x i32> %b${number}, splat (i32 32767)
  %r${number} = add <32 x i32> %h${number}, %l${number}
  %q${number} = or <32 x i32> %b${number}, splat (i32 4194304)
  %n${number} = fcmp uno <32 x float> %${number}, %factors
  %c${number} = select <32 x i1> %n${number}, <32 x i32> %q${number}, <32 x i32> %r${number}
  %w${number} = lshr <32 x i32> %c${number}, splat (i32 16)`;

/** Compiles a program: its assembly, and the function. */
async function compiled(name: string, text: string) {
  const options = ["-O3", "-march=x86-64-v3", "-w", `-fpass-plugin=${lanesPlugin()}`];
  const source = join(folder, `${name}.ll`);
  const library = join(folder, `${name}.so`);
  await Bun.write(source, text);
  const code = await runChecked(["clang-19", ...options, "-S", source, "-o", "-"]);
  await runChecked(["clang-19", ...options, "-shared", "-fPIC", source, "-o", library]);
  const { symbols, close } = dlopen(library, { [name]: { args: ["ptr", "ptr", "f32"], returns: "void" } });
  return { code, run: symbols[name] as NonNullable<(typeof symbols)[string]>, close };
}

if (process.platform === "linux" && process.arch === "x64")
  test("rounding that asks whether another number is NaN stays what it is", async () => {
    const sum = "fadd <32 x float> %a, %b";
    const text = program("asked", sum, sum.replace("fadd", "fsub"), askingOfBoth);
    const { run, close } = await compiled("asked", text);
    const numbers = new Float32Array(64).fill(3, 0, 32).fill(1, 32);
    const results = new Uint16Array(64);
    const rounded = (other: number) => {
      run(ptr(numbers), ptr(results), other);
      return [...new Set(results)];
    };
    expect(rounded(0)).toEqual([0x4080, 0x4000]);
    // With the bit that makes a NaN quiet.
    expect(rounded(Number.NaN)).toEqual([0x40c0, 0x4040]);
    close();
  });

if (process.platform === "linux" && process.arch === "x64")
  test.each([
    ["scaled", "fmul <32 x float> $, %factors", true],
    ["loaded", "select i1 true, <32 x float> $, <32 x float> %factors", false],
  ])("%s numbers are the nearest, NaN stays a quiet NaN", async (name, operation, isAtOnce) => {
    const text = program(name, operation.replace("$", "%a"), operation.replace("$", "%b"), truncated);
    const { code, run, close } = await compiled(name, text);
    expect(code.includes("vpavgw")).toBe(isAtOnce);
    const words = new Uint32Array(64);
    const results = new Uint16Array(64);
    const isNaN16 = (bits: number) => (bits & 0x7fc0) === 0x7fc0;
    let count = 0;
    // All upper halves, beside each other, with lower halves about the middle and the ends.
    for (const low of [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff]) {
      for (let high = 0; high < 65536; high += 64) {
        words.forEach((_, i) => {
          words[i] = (high + i) * 65536 + low;
        });
        run(ptr(words), ptr(results), 1);
        words.forEach((bits, i) => {
          const result = results[(i % 32) * 2 + (i >> 5)] as number;
          const isNaN32 = (bits & 0x7fffffff) > 0x7f800000;
          const isRight = isNaN32
            ? isNaN16(result) && result >> 15 === bits >>> 31
            : result === convertBits("f32", "bf16", bits);
          if (!isRight) throw new Error(`${bits.toString(16)} gave ${result.toString(16)}`);
          count++;
        });
      }
    }
    expect(count).toBe(6 * 65536);
    close();
  });
