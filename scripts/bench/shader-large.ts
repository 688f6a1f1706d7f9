import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Benchmark } from "./benchmark.ts";
import { runChild } from "./child.ts";
import { manyInstances, manyLines } from "./large-sources.ts";

interface LargeSource {
  readonly name: string;
  readonly source: string;
  readonly lines: string;
  /** The first one asked for, and a further one. */
  readonly kernels: readonly [string, string];
  /** Seconds wanted for each. */
  readonly wanted: readonly [number, number];
}

/** Pipelines of a source with hundreds of kernels, from an empty shader cache. */
function shaderLarge({ name, source, lines, kernels, wanted }: LargeSource): Benchmark {
  const [first, further] = wanted;
  return {
    name,
    unit: "ms",
    about: `first pipeline of a source of ${lines}, empty shader cache`,
    baselineAbout: "a further one in the same process",
    target: {
      text: `at most ${first} s, a further one ${further} s`,
      met: (value, ratio) => value <= first * 1000 && value / ratio <= further * 1000,
    },
    rounds: ({ quick }) => (quick ? 1 : 9),
    warmUp: false,
    prepare() {
      const folder = mkdtempSync(join(tmpdir(), "metal-attention-bench-"));
      const file = join(folder, "large.metal");
      writeFileSync(file, source);
      // One process a round gives both figures.
      const left = new Map<number, number>();
      const time = (place: number) => () => {
        if (!left.has(place)) {
          const cache = mkdtempSync(join(folder, "cache-"));
          const times = runChild("child-large-source.ts", { SOFTMETAL_CACHE_DIR: cache }, [file, ...kernels]);
          rmSync(cache, { recursive: true });
          for (const [k, text] of times.split(" ").entries()) left.set(k, Number(text));
        }
        const milliseconds = left.get(place) ?? Number.NaN;
        left.delete(place);
        return milliseconds;
      };
      return {
        measure: time(0),
        baseline: time(1),
        dispose: () => rmSync(folder, { recursive: true, force: true }),
      };
    },
  };
}

export const shaderLargeSources: readonly Benchmark[] = [
  shaderLarge({
    name: "shader-1920-kernels",
    source: manyInstances().source,
    lines: "200 lines and 1,920 kernels",
    kernels: ["vv_Add_float_1", "vs_Mul_float_8"],
    wanted: [2, 0.2],
  }),
  shaderLarge({
    name: "shader-690-kernels",
    source: manyLines().source,
    lines: "15,000 lines and 690 kernels",
    kernels: ["kernel_0_float", "kernel_344_float"],
    wanted: [4, 0.5],
  }),
];
