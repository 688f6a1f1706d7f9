import { readdirSync, readFileSync } from "node:fs";
import type { Device } from "../../src/index.ts";

/** A change of a shader's text that must fit in exactly one place. */
export interface ShaderPatch {
  readonly find: RegExp;
  readonly replace: string;
}

/** A mistake that is planted in a shader by one patch or several. */
export interface Mistake {
  readonly name: string;
  readonly patches: readonly ShaderPatch[];
}

/** A mistake of one patch. */
export function oneMistake(name: string, find: RegExp, replace: string): Mistake {
  return { name, patches: [{ find, replace }] };
}

const folder = new URL("../../shaders/", import.meta.url);

/** The structs' header, which lies with the C headers; the library puts it in place of its include. */
const structsHeader = "ShaderTypes.h";
const include = new URL("../../swift/Sources/CMetalAttention/include/", import.meta.url);

/** The files of the library's shaders whose names end so, by their paths in `shaders/`, and the structs' header. */
export function shaderFiles(ending: ".metal" | ".h"): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(ending));
  return [...files, ...(ending === ".h" ? [structsHeader] : [])].sort();
}

/** The text of a shader of the library, or of a header that it includes. */
export function shaderText(file: string): string {
  return readFileSync(new URL(file, file === structsHeader ? include : folder), "utf8");
}

const quotedInclude = /^#include "([\w./]+)"$/gm;

/** The text of a shader with the headers of `shaders/` that it includes, each once, so that a patch can reach them. */
function wholeShaderText(file: string, included = new Set<string>()): string {
  return shaderText(file)
    .replace("#pragma once", "")
    .replace(quotedInclude, (line, header: string) => {
      if (header === structsHeader) return line;
      if (included.has(header)) return "";
      included.add(header);
      return wholeShaderText(header, included);
    });
}

/** Applies `patch`; throws where it fits in no place or in several, so that no test goes on with an unchanged shader. */
export function patchShader(text: string, { find, replace }: ShaderPatch): string {
  const places = [...text.matchAll(new RegExp(find.source, `${find.flags}g`))];
  if (places.length !== 1) throw new Error(`${find} fits in ${places.length} places of the shader, not in one`);
  return text.replace(find, replace);
}

const instantiation = /^instantiate_\w+\("(\w+)"[^;]*\);$/gm;

/** The text with those lines of its table that may make an entry point, since the others need not compile. */
function keepEntryPoint(text: string, kernel: string): string {
  let kept = 0;
  const result = text.replace(instantiation, (line, name: string) => {
    if (!kernel.startsWith(name)) return "";
    kept += 1;
    return line;
  });
  if (kept === 0) throw new Error(`the shader has no entry point ${kernel}`);
  return result;
}

let planted = 0;

/** Registers one kernel of a shader, changed by `patches`, under a name that the library does not know; gives the name. */
export function plant(device: Device, file: string, kernel: string, patches: readonly ShaderPatch[]): string {
  planted += 1;
  const suffix = `_planted_${planted}`;
  const text = patches.reduce(patchShader, keepEntryPoint(wholeShaderText(file), kernel));
  // Compiled for a few runs.
  device.registerSource(`${kernel}${suffix}.metal`, `#define KERNEL_SUFFIX "${suffix}"\n${text}`, {
    optimizationLevel: "size",
  });
  return `${kernel}${suffix}`;
}
