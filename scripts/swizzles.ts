#!/usr/bin/env bun
/**
 * Writes the swizzles of SoftMetal's vectors, one header for each number of components: `bun scripts/swizzles.ts`.
 * Every entry is `SM_SWIZZLE(xy, rg, 2, 01, 0, 1)`, names, width and indices, or with `SM_REPEAT` where an index comes
 * twice, which cannot be assigned to. They are most of what clang reads of the language, so those that few sources use
 * are there only for a source that does (`RareSwizzles.swift` tells).
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dir, "../swift/Sources/CSoftMetal/msl");
const lineLength = 120;

/** Of three and four components those that most sources do with, beside repetitions of one. */
const common = ["xyz", "yzw", "xyzw", "zyx", "wzyx", "yzx", "zxy"];

function isCommon(indices: readonly number[]): boolean {
  const name = indices.map((index) => "xyzw"[index]).join("");
  return indices.length === 2 || new Set(indices).size === 1 || common.includes(name);
}

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

function filled(entries: readonly string[]): string[] {
  const lines = [""];
  for (const text of entries) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + text.length <= lineLength) lines[lines.length - 1] = `${line} ${text}`;
    else lines.push(text);
  }
  return lines;
}

function header(width: number): string {
  const all = [2, 3, 4].flatMap((length) => tuples(width, length));
  const lines = [
    `// Swizzles of ${width} components, written by scripts/swizzles.ts.`,
    "// clang-format off",
    ...filled(all.filter(isCommon).map(entry)),
    "#ifdef SM_ALL_SWIZZLES",
    ...filled(all.filter((indices) => !isCommon(indices)).map(entry)),
    "#endif",
  ];
  return `${lines.join("\n")}\n`;
}

for (const width of [2, 3, 4]) writeFileSync(join(folder, `softmetal_swizzles_${width}`), header(width));
