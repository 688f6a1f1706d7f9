#!/usr/bin/env bun
/**
 * Writes the swizzles of SoftMetal's vectors, one header for each number of components: `bun scripts/swizzles.ts`.
 * Every entry is `SM_SWIZZLE(xy, rg, 2, 01, 0, 1)`, names, width and indices, or with `SM_REPEAT` where an index comes
 * twice, which cannot be assigned to.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dir, "../swift/Sources/CSoftMetal/msl");
const lineLength = 120;

/** All lists of `length` indices below `width`. */
function tuples(width: number, length: number): number[][] {
  if (length === 0) return [[]];
  return tuples(width, length - 1).flatMap((head) => Array.from({ length: width }, (_, last) => [...head, last]));
}

function entry(indices: readonly number[]): string {
  const [xyzw, rgba] = ["xyzw", "rgba"].map((letters) => indices.map((index) => letters[index]).join(""));
  const form = new Set(indices).size === indices.length ? "SM_SWIZZLE" : "SM_REPEAT";
  return `${form}(${xyzw}, ${rgba}, ${indices.length}, ${indices.join("")}, ${indices.join(", ")})`;
}

function header(width: number): string {
  const entries = [2, 3, 4].flatMap((length) => tuples(width, length)).map(entry);
  const lines = [`// Swizzles of ${width} components, written by scripts/swizzles.ts.`, "// clang-format off", ""];
  for (const text of entries) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + text.length <= lineLength) lines[lines.length - 1] = `${line} ${text}`;
    else lines.push(text);
  }
  return `${lines.join("\n")}\n`;
}

for (const width of [2, 3, 4]) writeFileSync(join(folder, `softmetal_swizzles_${width}`), header(width));
