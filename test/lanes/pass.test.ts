/** The compiler pass alone: small kernels in LLVM's language, run for one SIMD group with known results. */
import { dlopen, ptr } from "bun:ffi";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, runChecked } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";
import { compileProgram, expectedOf, laneCounts, programs } from "./programs.ts";

const folder = mkdtempSync(join(tmpdir(), "lanes-"));
afterAll(() => rmSync(folder, { recursive: true }));

const isLinux = process.platform === "linux";

/** A program of `ir/` whose kernel has attributes: its file. */
async function withAttributes(name: string, attributes: string): Promise<string> {
  const file = join(folder, `${name}.ll`);
  const text = await Bun.file(join(import.meta.dir, `ir/${name}.ll`)).text();
  await Bun.write(file, text.replace("%simdgroup) {", `%simdgroup) ${attributes} {`));
  return file;
}

/** The version for whole SIMD groups that the pass and LLVM make of a program, in LLVM's language. */
async function regularVersion(source: string, level = "x86-64-v4", ...more: string[]): Promise<string> {
  const options = ["-O3", `-march=${level}`, "-S", "-emit-llvm", "-w", `-fpass-plugin=${lanesPlugin()}`, ...more];
  const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
  return code.split(/define[^\n]*@kernel\.regular\(/)[1]?.split("\n}")[0] ?? "";
}

if (isLinux)
  test.each(Object.keys(programs))("%s", async (name) => {
    const program = await compileProgram(name, lanesPlugin(), folder);
    for (const lanes of laneCounts)
      expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf(name, lanes) });
  });

if (isLinux && process.arch === "x64")
  test.each(["x86-64-v2", "x86-64-v3"])(
    "numbers of odd bits, of which a register has no power of two, at %s",
    async (level) => {
      const program = await compileProgram("oddBits", lanesPlugin(), folder, level);
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("oddBits", lanes) });
    },
  );

/** Without instructions for masks of 16 bits, for scatters, for gathers. */
if (isLinux && process.arch === "x64")
  describe.each(["x86-64-v2", "x86-64-v3"])("masked accesses at %s", (level) => {
    test("give what they do elsewhere", async () => {
      const program = await compileProgram("masked", lanesPlugin(), folder, level);
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("masked", lanes) });
    });

    test("are no branch a lane each, which would take clang minutes a kernel", async () => {
      const source = join(import.meta.dir, "ir/masked.ll");
      const options = ["-O3", `-march=${level}`, "-S", "-w", `-fpass-plugin=${lanesPlugin()}`];
      const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
      // 3 accesses of 32 lanes, in 2 versions.
      expect(code.match(/^\tj\w+/gm)?.length ?? 0).toBeLessThan(40);
    });
  });

if (isLinux)
  test("what LLVM generates wrong code for is written otherwise, and means the same", async () => {
    const source = join(import.meta.dir, "ir/miscompiled.ll");
    // Of LLVM's own passes none runs.
    const options = ["-O0", "-w", `-fpass-plugin=${lanesPlugin()}`];
    const code = await runChecked(["clang-19", ...options, "-S", "-emit-llvm", source, "-o", "-"]);
    expect(code).not.toMatch(/shufflevector <\d+ x i1>.*(false|true|zeroinitializer, <8 x i32> <)/);
    expect(code).toMatch(/mul <4 x i8> %all, <i8 6, i8 6, i8 4, i8 0>/);
    const library = join(folder, "miscompiled.so");
    await runChecked(["clang-19", ...options, "-shared", "-fPIC", source, "-o", library]);
    const signature = { args: ["u8"], returns: "u8" } as const;
    const { symbols, close } = dlopen(library, {
      splat: { args: ["bool"], returns: "u8" },
      lower: signature,
      longer: signature,
      product: signature,
    });
    expect([symbols.splat(false), symbols.splat(true)]).toEqual([0x40, 0x4f]);
    for (let given = 0; given < 256; given++) {
      const bit = (from: number, to: number) => ((given >> from) & 1) << to;
      expect(symbols.lower(given) & 0x7f).toBe(bit(2, 0) | bit(1, 1) | 4 | bit(3, 3));
      expect(symbols.lower(given) & 0x80).toBe(0x80);
      expect(symbols.longer(given)).toBe(given & 15);
      expect(symbols.product(given)).toBe((given * 16) & 255);
    }
    close();
  });

if (isLinux)
  test("where all lanes are known to be there, no version is made for others", async () => {
    const source = join(folder, "whole.ll");
    const text = await Bun.file(join(import.meta.dir, "ir/uniform.ll")).text();
    const options = ["-O3", "-S", "-emit-llvm", "-w", `-fpass-plugin=${lanesPlugin()}`];
    for (const whole of ["%whole", "true"]) {
      await Bun.write(source, text.replace("i1 %whole)", `i1 ${whole})`));
      const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
      expect(code).toContain("@kernel.regular(");
      expect({ whole, others: code.includes("@kernel.general(") }).toEqual({ whole, others: whole !== "true" });
    }
  });

if (isLinux && process.arch === "x64")
  test("lanes that own a row access it as vectors, where some of them go on alone too", async () => {
    const regular = await regularVersion(join(import.meta.dir, "ir/runs.ll"));
    const count = (what: RegExp) => regular.match(what)?.length ?? 0;
    expect(regular).not.toMatch(/masked\.(gather|scatter)\.v32/);
    expect(count(/call [^\n]*masked\.load/g)).toBeGreaterThan(0);
    // By the odd lanes: where all rows have some, and no page ends in one, as plain vectors.
    expect(count(/icmp ult i64 %\w+, 4081/g)).toBeGreaterThan(0);
    expect(count(/= load <4 x i32>/g)).toBeGreaterThan(0);
    // 8 rows, and not 32 lanes, divide.
    expect(regular).not.toContain("urem <32 x i32>");
  });

if (isLinux && process.arch === "x64")
  test("bytes copied from memory to memory are moved as vectors of several lanes", async () => {
    const regular = await regularVersion(join(import.meta.dir, "ir/copied.ll"));
    // No component by itself: by a mask that leaves out three of four, or by an address for each lane.
    expect(regular).not.toMatch(/masked\.(gather|scatter)/);
    expect(regular.match(/load <\d+ x \w+>/g)?.length).toBeGreaterThan(0);
    const masks = [...regular.matchAll(/<(\d+) x i1> <(.*?)>/g)];
    const shares = masks.map(([, count, bits]) => (bits?.match(/true/g)?.length ?? 0) / Number(count));
    expect(shares).toEqual([0.75, 0.75]); // three words of four: a load and a store
  });

if (isLinux && process.arch === "x64")
  test.each(["permute", "asked", "tables"])("%s, whose exchanges are instructions of AVX2", async (name) => {
    const features = `"target-features"="+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt"`;
    const source = await withAttributes(name, `"target-cpu"="x86-64-v3" ${features}`);
    const plugin = `-fpass-plugin=${lanesPlugin()}`;
    const code = await runChecked(["clang-19", "-O3", "-S", "-emit-llvm", "-w", plugin, source, "-o", "-"]);
    expect(code).toMatch(/call <8 x i32> @llvm\.x86\.avx2\.permd/);
    const program = await compileProgram(name, lanesPlugin(), folder, "x86-64-v3", source);
    for (const lanes of laneCounts)
      expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf(name, lanes) });
  });

if (isLinux && process.arch === "x64")
  test("what halves of the lanes ask one lane for is read once, and rows that it names as vectors", async () => {
    const regular = await regularVersion(join(import.meta.dir, "ir/asked.ll"));
    expect(regular.match(/= load <16 x i32>/g)).toHaveLength(2);
    // The odd lanes do not come as halves, and their exchange goes through memory: no attribute tells of AVX2.
    expect(regular.match(/call [^\n]*masked\.gather/g)).toHaveLength(1);
  });

if (isLinux && process.arch === "x64")
  test.each([
    ["columns", 8],
    ["shifted", 16],
  ])("an offset that is shifted and cut is side by side in a run: %s", async (name, run) => {
    const regular = await regularVersion(join(import.meta.dir, `ir/${name}.ll`));
    expect(regular).toMatch(new RegExp(`load <${run} x i32>`));
    expect(regular).not.toMatch(/gather|scatter/);
  });

if (isLinux && process.arch === "x64")
  test("a table that repeats itself is looked up in as many registers as it has", async () => {
    const source = await withAttributes("tables", `"target-cpu"="x86-64-v3" "target-features"="+avx,+avx2"`);
    const regular = await regularVersion(source, "x86-64-v3");
    // Of each four the first register is looked up for all three ways at once.
    const counts = regular.split(/^\d+:|^\w+:/m).map((block) => {
      const of = (name: string) => block.match(new RegExp(`call [^\n]*@llvm\\.x86\\.${name}\\(`, "g"))?.length ?? 0;
      return `${of("avx2\\.permd")} ${of("avx\\.blendv\\.ps\\.256")}`;
    });
    for (const count of ["3 0", "7 4", "15 12"]) expect(counts).toContain(count);
  });

if (isLinux && process.arch === "x64")
  test("a table of up to 256 numbers is looked up in registers, where no page ends in it", async () => {
    const source = await withAttributes("lookUps", `"prefer-vector-width"="512"`);
    const regular = await regularVersion(source);
    const count = (what: RegExp) => regular.match(what)?.length ?? 0;
    // For 16 lanes at a time 8, 2 and 1 of pairs of registers; the other way for each of the three.
    expect(count(/call [^\n]*vpermi2var\.d\.512/g)).toBe(2 * (8 + 2 + 1));
    expect(count(/call [^\n]*masked\.gather/g)).toBe(3);
    const memory = [...regular.matchAll(/and i64 %\w+, 4095|icmp ult i64 %\w+, (\d+)/g)].map(([, limit]) => limit);
    expect(memory.filter((limit) => limit !== undefined).map(Number)).toEqual([3073, 3841, 3969]);
    const program = await compileProgram("lookUps", lanesPlugin(), folder, "native", source);
    for (const lanes of laneCounts)
      expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("lookUps", lanes) });
  });

if (isLinux && process.arch === "x64")
  describe("a table of 256 numbers that bytes of words ask for", () => {
    const vbmi = `"prefer-vector-width"="512" "target-features"="+avx512f,+avx512bw,+avx512vbmi"`;

    test("is turned once a loop, and looked up for four bytes of 16 words at once", async () => {
      const regular = await regularVersion(await withAttributes("byteTables", vbmi));
      const count = (what: RegExp) => regular.match(what)?.length ?? 0;
      expect(count(/call [^\n]*vpermi2var\.qi\.512/g)).toBeGreaterThan(0);
      expect(count(/call [^\n]*vpermi2var\.d/g)).toBe(0);
      // Of all lanes' words four bytes, and of the odd ones' two, in each copy that LLVM makes of the loop.
      expect(count(/call [^\n]*masked\.gather/g) % (4 + 2)).toBe(0);
      const limits = [...regular.matchAll(/icmp ult i64 %\w+, (\d+)/g)].map(([, limit]) => Number(limit));
      expect([...new Set(limits)]).toEqual([3073]);
    });

    test("is not where each turn writes it", async () => {
      const source = await withAttributes("byteTables", vbmi);
      const text = await Bun.file(source).text();
      const written = text.replace("  %nextTurn = ", "  store i32 %sums, ptr %changed\n  %nextTurn = ");
      expect(written).not.toBe(text);
      await Bun.write(source, written);
      const regular = await regularVersion(source);
      expect(regular).not.toContain("vpermi2var.qi");
      expect(regular).toContain("vpermi2var.d");
    });

    test("gives what a gather reads, on a processor that has the instruction", async () => {
      const hasInstruction = (await Bun.file("/proc/cpuinfo").text()).includes("avx512vbmi");
      const source = await withAttributes("byteTables", hasInstruction ? vbmi : "");
      const program = await compileProgram("byteTables", lanesPlugin(), folder, "native", source);
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("byteTables", lanes) });
    });
  });

if (isLinux && process.arch === "x64")
  describe("words of a row that halves of the lanes share", () => {
    const forms = [
      // Three, for each half or for eight lanes. What a number says that lanes have loaded is gathered; with AVX2 the odd
      // lanes call a function for that.
      [
        "x86-64-v4",
        `"prefer-vector-width"="512" "target-features"="+avx512f,+avx512bw"`,
        /vpermi2var\.hi\.512/g,
        3 * 2,
        4,
      ],
      ["x86-64-v3", `"target-cpu"="x86-64-v3" "target-features"="+avx,+avx2"`, /avx2\.pshuf\.b/g, 3 * 4, 2],
    ] as const;
    test.each(forms)(
      "are picked from registers, where no page ends in it, at %s",
      async (level, attributes, pick, count, gathers) => {
        const regular = await regularVersion(await withAttributes("rowLoads", attributes), level);
        const calls = [...regular.matchAll(/ call [^\n]*/g)].join("\n");
        expect(calls.match(pick)).toHaveLength(count);
        expect(calls.match(/masked\.gather/g)).toHaveLength(gathers);
        const limits = [...regular.matchAll(/icmp ult i64 %\w+, (\d+)/g)].map(([, limit]) => Number(limit));
        expect(limits).toEqual(new Array<number>(limits.length).fill(4096 - 128 + 1));
        expect(limits.length).toBeGreaterThanOrEqual(2);
      },
    );

    test("are those that a gather reads", async () => {
      const program = await compileProgram(
        "rowLoads",
        lanesPlugin(),
        folder,
        "x86-64-v3",
        await withAttributes("rowLoads", forms[1][1]),
      );
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("rowLoads", lanes) });
    });
  });

if (isLinux && process.arch === "x64")
  test("independent threads load, compute and store a register at a time; others all together", async () => {
    const accesses = async (file: string): Promise<string[]> => {
      const regular = await regularVersion(file, "x86-64-v3");
      return [...regular.matchAll(/(?<== )load <.*?>|store <.*?>/g)].map(([access]) => access);
    };
    const together = async (name: string): Promise<string[]> => {
      const file = join(folder, "together.ll");
      const text = await Bun.file(join(import.meta.dir, `ir/${name}.ll`)).text();
      await Bun.write(file, text.replace("call void @sm_independent()", ""));
      return accesses(file);
    };
    const part = ["load <16 x i16>", "load <8 x i32>", "store <16 x i16>", "store <8 x i32>"];
    expect(await accesses(join(import.meta.dir, "ir/independent.ll"))).toEqual([part, part, part, part].flat());
    expect(await together("independent")).toEqual([
      "load <64 x i16>",
      "load <32 x i32>",
      "store <64 x i16>",
      "store <32 x i32>",
    ]);
    // What is only moved: one access after another.
    const four = (access: string) => new Array<string>(4).fill(access);
    expect(await accesses(join(import.meta.dir, "ir/moved.ll"))).toEqual([
      ...four("load <16 x i16>"),
      ...four("store <16 x i16>"),
    ]);
    expect(await together("moved")).toEqual([
      "load <32 x i16>",
      "load <32 x i16>",
      "store <32 x i16>",
      "store <32 x i16>",
    ]);
  });

if (isLinux && process.arch === "x64")
  test("independent threads compute what a loop needs a register at a time; others all together", async () => {
    const source = join(import.meta.dir, "ir/prepared.ll");
    const others = join(folder, "others.ll");
    await Bun.write(others, (await Bun.file(source).text()).replace("call void @sm_independent()", ""));
    const products = async (file: string) => (await regularVersion(file, "x86-64-v3")).match(/mul <\d+ x i32>/g) ?? [];
    const count = (found: readonly string[], type: string) => found.filter((each) => each === `mul ${type}`).length;
    const own = await products(source);
    const all = await products(others);
    // Twenty in the chain; those of the loop stay together.
    expect([count(own, "<8 x i32>"), count(all, "<8 x i32>")]).toEqual([80, 0]);
    expect(count(all, "<32 x i32>") - count(own, "<32 x i32>")).toBe(20);
  });

if (isLinux && process.arch === "x64")
  test("long loops of independent threads ask ahead for memory, as far as clang is told; others do not", async () => {
    const short = await Bun.file(join(import.meta.dir, "ir/ahead.ll")).text();
    const steps = Array.from({ length: 20 }, (_, i) => [
      `%x${i} = xor i32 %${i === 0 ? "there" : `y${i - 1}`}, ${i + 77}`,
      `%y${i} = mul i32 %x${i}, ${2 * i + 3}`,
    ]).flat();
    const long = short.replace("%more = add i32 %there, 1", `${steps.join("\n")}\n%more = add i32 %y19, 1`);
    const options = ["-prefetch-distance=2400", "-cache-line-size=64"].flatMap((option) => ["-mllvm", option]);
    const requests = async (text: string, ...more: string[]) => {
      const file = join(folder, "ahead.ll");
      await Bun.write(file, text);
      return (await regularVersion(file, "x86-64-v3", ...more)).match(/call void @llvm\.prefetch/g)?.length ?? 0;
    };
    expect(await requests(long, ...options)).toBeGreaterThan(0);
    expect(await requests(long)).toBe(0);
    expect(await requests(short, ...options)).toBe(0);
    expect(await requests(long.replace("call void @sm_independent()", ""), ...options)).toBe(0);
  });

if (isLinux && process.arch === "x64")
  test("sums of one left matrix lie side by side, though short loops are inside", async () => {
    const source = await withAttributes("products", `"target-cpu"="x86-64-v4" "prefer-vector-width"="512"`);
    const regular = await regularVersion(source);
    const count = (what: RegExp) => regular.match(what)?.length ?? 0;
    // Two turns of the outer loop together: 2 pairs of sums of 4 products, each of 64 rows by elements.
    expect({ pairs: count(/call [^\n]*fma\.v16f32/g), singles: count(/call [^\n]*fma\.v8f32/g) }).toEqual({
      pairs: 2 * 4 * 64,
      singles: 0,
    });
    // What all turns multiply goes to memory once, before them.
    const loop = regular.split(/\n(?=[\w.]+:)/).find((block) => block.includes("fma.v16f32"));
    expect(loop).not.toContain("store <64 x float>");
    expect(count(/store <64 x float>/g)).toBe(2 * 4);
  });

if (isLinux && process.arch === "x64")
  test.each(["bfloat", "i16"])("a loop that rounds to bfloat and stores %s is one over vectors", async (stored) => {
    const source = join(folder, "rounding.ll");
    await Bun.write(
      source,
      `define void @round(ptr noalias %from, ptr noalias %to) {
       entry:
         br label %loop
       loop:
         %i = phi i64 [ 0, %entry ], [ %next, %loop ]
         %place = getelementptr float, ptr %from, i64 %i
         %value = load float, ptr %place, align 4
         %rounded = fptrunc float %value to bfloat
         %bits = bitcast bfloat %rounded to i16
         %target = getelementptr i16, ptr %to, i64 %i
         store ${stored === "i16" ? "i16 %bits" : "bfloat %rounded"}, ptr %target, align 2
         %next = add i64 %i, 1
         %done = icmp eq i64 %next, 4096
         br i1 %done, label %end, label %loop
       end:
         ret void
       }`,
    );
    const options = ["-O3", "-march=x86-64-v3", "-S", "-emit-llvm", "-w", `-fpass-plugin=${lanesPlugin()}`];
    const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
    expect(code).toMatch(/store <\d+ x i16>/);
    expect(code).not.toContain("fptrunc");
  });

if (isLinux && process.arch === "x64")
  describe("products where registers have 256 bits", () => {
    test.each(["x86-64-v3", "native"])("give sums of products, %s", async (processor) => {
      const object = join(folder, `products-${processor}.so`);
      const options = ["-O3", `-march=${processor}`, "-shared", "-fPIC", "-nostdlib", "-w"];
      const source = join(import.meta.dir, "ir/products.ll");
      await runChecked(["clang-19", ...options, `-fpass-plugin=${lanesPlugin()}`, source, "-o", object]);
      const { symbols } = dlopen(object, { kernel: { args: ["ptr", "u32"], returns: "void" } });
      // Small integers, of which all sums are exact.
      const group = Float32Array.from({ length: 5120 }, (_, i) => ((i * 29) % 13) - 6);
      new Uint32Array(group.buffer)[0] = 32;
      const [input, output] = [256, 4096];
      const element = (matrix: number, row: number, column: number) =>
        group[input + matrix * 64 + row * 8 + column] as number;
      const expected: number[] = [];
      for (let r = 0; r < 2; r++)
        for (let d = 0; d < 8; d++)
          for (let i = 0; i < 64; i++) {
            let sum = 0;
            for (let k = 0; k < 4; k++)
              for (let j = 0; j < 8; j++) sum += element(4 * r + k, i >> 3, j) * element(8 * k + d, j, i & 7);
            expected.push(sum);
          }
      symbols.kernel(ptr(group), 0);
      expect(Array.from(group.subarray(output, output + expected.length))).toEqual(expected);
    });

    test("are calls of one function, and a matrix that several have is stored once", async () => {
      const source = join(folder, "calls.ll");
      const text = await Bun.file(join(import.meta.dir, "ir/products.ll")).text();
      await Bun.write(source, text.replace("%simdgroup) {", `%simdgroup) "target-cpu"="x86-64-v3" {`));
      const options = ["-O3", "-march=x86-64-v3", "-S", "-emit-llvm", "-w", `-fpass-plugin=${lanesPlugin()}`];
      const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
      const bodyOf = (name: string) => code.split(new RegExp(`define[^\\n]*@${name}\\(`))[1]?.split("\n}")[0] ?? "";
      const count = (text: string, what: RegExp) => text.match(what)?.length ?? 0;
      const loop =
        bodyOf("kernel\\.regular")
          .split(/\n(?=[\w.]+:)/)
          .find((block) => block.includes("lanes.multiply")) ?? "";
      // Two turns together: in each 4 right matrices, of 8 rows, and 2 products of each.
      expect({
        calls: count(loop, /call [^\n]*@lanes\.multiply\(/g),
        rows: count(loop, /store <8 x float>/g),
        additions: count(loop, /fma/g),
        inFunction: count(bodyOf("lanes\\.multiply"), /call [^\n]*fma\.v8f32/g),
      }).toEqual({ calls: 2 * 4 * 2, rows: 2 * 4 * 8, additions: 0, inFunction: 64 });
    });
  });

if (isLinux && process.arch === "x64")
  describe("lanes that ask for others at run time", () => {
    test("get the same through memory", async () => {
      const program = await compileProgram("permute", lanesPlugin(), folder, "x86-64-v3");
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("permute", lanes) });
    });

    test("find them in registers with AVX-512, and a loop finds one after another in one place", async () => {
      const source = join(folder, "permute.ll");
      const text = await Bun.file(join(import.meta.dir, "ir/permute.ll")).text();
      const attributes = `"target-cpu"="x86-64-v4" "prefer-vector-width"="512"`;
      await Bun.write(source, text.replace("%simdgroup) {", `%simdgroup) ${attributes} {`));
      const options = ["-O3", "-march=x86-64-v4", "-S", "-w", `-fpass-plugin=${lanesPlugin()}`];
      const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
      const regular = code.split("\nkernel.regular:")[1]?.split("\nkernel.general:")[0] ?? "";
      expect(regular.match(/vperm[it]2d\s[^\n]*zmm/g)?.length).toBe(2);
      // The instruction looks at five bits of a number, whatever the others are.
      expect(regular.split(/vperm[it]2d/)[0]).not.toContain("vpand");
      // Each of the loop's turns loads one lane; none of them stores the vector.
      const loops = regular.split(/^(?=\.LBB)/m).filter((block) => /imull/.test(block));
      expect(loops.length).toBeGreaterThan(0);
      for (const loop of loops) expect(loop).not.toMatch(/vmov\w+\s+%[yz]mm\d+, [^\n]*\(%rsp\)/);
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
    const options = ["-O3", "-c", `-fpass-plugin=${lanesPlugin()}`];
    const { status, errors } = await run(["clang-19", ...options, source, "-o", join(folder, "refused.o")]);
    expect(status).not.toBe(0);
    expect(errors).toContain("softmetal: kernel 'kernel' cannot run as vectors: a call through a pointer");
  });

// Vectors of Metal's are classes, whose components a kernel reads and writes one by one.
if (isLinux && process.arch === "x64")
  test("sums of products stay whole where a kernel looks at their elements", async () => {
    const source = join(folder, "elements.ll");
    const product = (name: string, factor: string, at: number) => `
      %${name}.place = getelementptr float, ptr %right, i64 ${64 * at}
      %${name}.share = call double @sm_matrix_load_32(ptr %${name}.place, i64 8, i1 true)
      %${name}.sum = getelementptr i8, ptr %sums, i64 ${8 * at}
      %${name}.old = load double, ptr %${name}.sum
      %${name} = call double @sm_matrix_multiply(double ${factor}, double %${name}.share, double %${name}.old)
      store double %${name}, ptr %${name}.sum`;
    const words = [0, 4, 8, 12];
    await Bun.write(
      source,
      `declare void @sm_kernel(i32, i1) #0
      declare double @sm_matrix_load_32(ptr, i64, i1) #1
      declare void @sm_matrix_store_32(double, ptr, i64, i1) #0
      declare double @sm_matrix_multiply(double, double, double) #2
      define void @kernel(ptr %group, i32 %simdgroup) "target-cpu"="x86-64-v4" "prefer-vector-width"="512" {
        %sums = alloca [16 x i8], align 8
        call void @sm_kernel(i32 32, i1 true)
        %left = load ptr, ptr %group
        %right = getelementptr i8, ptr %left, i64 4096
        ${words.map((at) => `%zero${at} = getelementptr i8, ptr %sums, i64 ${at}\nstore float 0.0, ptr %zero${at}`).join("\n")}
        br label %loop
      loop:
        %k = phi i64 [ 0, %0 ], [ %next, %loop ]
        %place = getelementptr float, ptr %left, i64 %k
        %share = call double @sm_matrix_load_32(ptr %place, i64 512, i1 false)
        %pair = bitcast double %share to <2 x float>
        %first = extractelement <2 x float> %pair, i64 0
        %second = extractelement <2 x float> %pair, i64 1
        %a = fneg float %first
        %b = fneg float %second
        %ab = insertelement <2 x float> poison, float %a, i64 0
        %negated = insertelement <2 x float> %ab, float %b, i64 1
        %factor = bitcast <2 x float> %negated to double
        ${product("p", "%factor", 0)}
        ${product("q", "%factor", 1)}
        %next = add i64 %k, 8
        %more = icmp ult i64 %next, 512
        br i1 %more, label %loop, label %end
      end:
        ${words.map((at) => `%result${at} = load float, ptr %zero${at}\n%half${at} = fmul float %result${at}, 0.5\nstore float %half${at}, ptr %zero${at}`).join("\n")}
        ${[0, 8].map((at) => `%total${at} = load double, ptr %zero${at}\ncall void @sm_matrix_store_32(double %total${at}, ptr %${at === 0 ? "left" : "right"}, i64 8, i1 false)`).join("\n")}
        ret void
      }
      attributes #0 = { convergent nounwind }
      attributes #1 = { convergent nounwind memory(argmem: read) }
      attributes #2 = { convergent nounwind memory(none) }`,
    );
    const options = ["-O3", "-S", "-emit-llvm", "-w"];
    const { status, errors, output } = await run([
      "clang-19",
      ...options,
      `-fpass-plugin=${lanesPlugin()}`,
      source,
      "-o",
      "-",
    ]);
    expect({ status, errors }).toEqual({ status: 0, errors: "" });
    const code = /^define [^\n]*@kernel\.regular\([\s\S]*?^\}/m.exec(output)?.[0] ?? "";
    // Two neighbours in rows of sixteen; nothing of them in memory, and no lane's view of one.
    expect(code.match(/@llvm\.fma\.v16f32/g)?.length).toBe(64);
    expect(code.match(/alloca/g)?.length).toBe(1);
    expect(code).not.toMatch(/shufflevector <64 x float>[^\n]*<32 x i32>/);
  });
