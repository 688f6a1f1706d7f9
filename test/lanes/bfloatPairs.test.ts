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

/** A function that rounds 32 numbers and 32 further ones to the lower and the upper halves of 32 words. */
const rounding = (name: string, operation: string) => `
define void @${name}(ptr %from, ptr %to, float %factor) {
  %one = insertelement <32 x float> poison, float %factor, i64 0
  %factors = shufflevector <32 x float> %one, <32 x float> poison, <32 x i32> zeroinitializer
  %more = getelementptr <32 x float>, ptr %from, i64 1
  %a = load <32 x float>, ptr %from, align 4
  %b = load <32 x float>, ptr %more, align 4
  %x = ${operation.replace("$", "%a")}
  %y = ${operation.replace("$", "%b")}
  %rx = fptrunc <32 x float> %x to <32 x bfloat>
  %ry = fptrunc <32 x float> %y to <32 x bfloat>
  %bx = bitcast <32 x bfloat> %rx to <32 x i16>
  %by = bitcast <32 x bfloat> %ry to <32 x i16>
  %wx = zext <32 x i16> %bx to <32 x i32>
  %wy = zext <32 x i16> %by to <32 x i32>
  %upper = shl <32 x i32> %wy, splat (i32 16)
  %words = or <32 x i32> %upper, %wx
  store <32 x i32> %words, ptr %to, align 4
  ret void
}
`;

/** A sum and a difference, rounded by integers, where it is asked whether they or another number are NaN. */
const byHand = () => {
  const half = (name: string) => `
  %b${name} = bitcast <32 x float> %${name} to <32 x i32>
  %s${name} = lshr <32 x i32> %b${name}, splat (i32 16)
  %l${name} = and <32 x i32> %s${name}, splat (i32 1)
  %h${name} = add <32 x i32> %b${name}, splat (i32 32767)
  %r${name} = add <32 x i32> %h${name}, %l${name}
  %q${name} = or <32 x i32> %b${name}, splat (i32 4194304)
  %n${name} = fcmp uno <32 x float> %${name}, %others
  %w${name} = select <32 x i1> %n${name}, <32 x i32> %q${name}, <32 x i32> %r${name}`;
  return `
define void @asked(ptr %from, ptr %to, float %other) {
  %one = insertelement <32 x float> poison, float %other, i64 0
  %others = shufflevector <32 x float> %one, <32 x float> poison, <32 x i32> zeroinitializer
  %more = getelementptr <32 x float>, ptr %from, i64 1
  %a = load <32 x float>, ptr %from, align 4
  %b = load <32 x float>, ptr %more, align 4
  %x = fadd <32 x float> %a, %b
  %y = fsub <32 x float> %a, %b${half("x")}${half("y")}
  %lower = lshr <32 x i32> %wx, splat (i32 16)
  %upper = and <32 x i32> %wy, splat (i32 -65536)
  %words = or <32 x i32> %upper, %lower
  store <32 x i32> %words, ptr %to, align 4
  ret void
}
`;
};

if (process.platform === "linux" && process.arch === "x64")
  test("rounding that asks whether another number is NaN stays what it is", async () => {
    const source = join(folder, "asked.ll");
    const library = join(folder, "asked.so");
    await Bun.write(source, byHand());
    const options = ["-O3", "-march=x86-64-v3", "-w", `-fpass-plugin=${lanesPlugin()}`];
    await runChecked(["clang-19", ...options, "-shared", "-fPIC", source, "-o", library]);
    const { symbols, close } = dlopen(library, { asked: { args: ["ptr", "ptr", "f32"], returns: "void" } });
    const numbers = new Float32Array(64).fill(3, 0, 32).fill(1, 32);
    const results = new Uint16Array(64);
    const rounded = (other: number) => {
      symbols.asked(ptr(numbers), ptr(results), other);
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
    const source = join(folder, `${name}.ll`);
    const library = join(folder, `${name}.so`);
    await Bun.write(source, rounding(name, operation));
    const options = ["-O3", "-march=x86-64-v3", "-w", `-fpass-plugin=${lanesPlugin()}`];
    const code = await runChecked(["clang-19", ...options, "-S", source, "-o", "-"]);
    expect(code.includes("vpavgw")).toBe(isAtOnce);
    await runChecked(["clang-19", ...options, "-shared", "-fPIC", source, "-o", library]);
    const { symbols, close } = dlopen(library, { [name]: { args: ["ptr", "ptr", "f32"], returns: "void" } });
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
        symbols[name]?.(ptr(words), ptr(results), 1);
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
